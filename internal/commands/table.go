package commands

// program says what stands before the command that a program runs, where its entry in Families does not. Options are written as for getopt.
type program struct {
	short    string            // letters, of which only those with a value matter
	long     string            // those with a value, and those without one that are the beginning of another
	operands int               // words before the command that are no options
	lead     func(string) bool // tells the operand, which may be left out, from the command
	sets     bool              // NAME=VALUE may stand before the command
	text     string            // options whose value a shell runs
	joined   bool              // a command that is one word, or whose first word has a blank, is a text of a shell
}

// all words but options and their values are operands.
const all = 1 << 30

// loader is the program that starts others, when it is started by itself.
var loader = &program{long: "library-path= preload= audit= argv0= inhibit-rpath= glibc-hwcaps-prepend= glibc-hwcaps-mask="}

// isArch says whether a word is a kind of machine, as setarch names them.
func isArch(w string) bool {
	return Listed("linux32 linux64 i386 i486 i586 i686 x86_64 amd64 athlon uname26 arm armh armv6l armv7l armv8l aarch64 arm64 ppc ppc32 ppc64 ppc64le s390 s390x mips mips64 riscv64 ia64 sparc sparc64 alpha parisc", w)
}

var programs = map[string]*program{
	"busybox": {}, "builtin": {}, "command": {}, "eatmydata": {}, "gosu": {operands: 1}, "su-exec": {operands: 1}, "linux32": {}, "linux64": {}, "i386": {}, "x86_64": {}, "uname26": {}, "catchsegv": {}, "fakeroot": {short: "l:s:i:b:"},
	"torify": {}, "torsocks": {}, "toybox": {}, "tsocks": {}, "unbuffer": {}, "xvfb-run": {short: "e:f:n:p:s:w:", long: "error-file= auth-file= server-num= listen-tcp= server-args= wait= xauth-protocol="},
	"ld-linux-x86-64.so.2":  loader,
	"ld-linux-aarch64.so.1": loader,
	"ld-linux.so.2":         loader,
	"ld-linux-armhf.so.3":   loader,
	"ld-musl-x86_64.so.1":   loader,
	"ld-musl-aarch64.so.1":  loader,
	"ld.so":                 loader,
	"caffeinate":            {short: "t:w:"},
	"choom":                 {short: "n:p:", long: "adjust= pid="},
	"chroot":                {operands: 1, long: "userspec= groups="},
	"chrt":                  {short: "T:P:D:", long: "sched-runtime= sched-period= sched-deadline=", operands: 1, lead: Digits},
	"cpulimit":              {short: "l:p:e:P:", long: "limit= pid= exe= path="},
	"dbus-run-session":      {long: "config-file= dbus-daemon="},
	"doas":                  {short: "a:C:u:"},
	"env":                   {short: "a:u:C:S:", long: "argv0= unset= chdir= split-string=", sets: true, text: "S split-string"},
	"faketime":              {operands: 1},
	"flock":                 {short: "w:E:c:", long: "wait= timeout= conflict-exit-code= command=", operands: 1, text: "c command"},
	"logsave":               {operands: 1},
	"ltrace":                {short: "a:A:D:e:F:l:n:o:p:s:u:w:x:", long: "align= config= library= indent= output= where="},
	"nsenter":               {short: "t:S:G:N:W:m::u::i::n::p::C::U::T::r::w::", long: "target= setuid= setgid= net-socket= wdns="},
	"parallel": {
		short: "j:P:n:N:a:S:I:L:s:E:C:d:J:l::i::e::U:", long: "jobs= max-procs= max-args= max-replace-args= max-chars= arg-file= sshlogin= sshloginfile= colsep= delimiter= joblog= results= " +
			"tmpdir= tempdir= timeout= delay= retries= halt= halt-on-error= load= memfree= memsuspend= nice= workdir= wd= tag tagstring= block= env= basefile= return= trc= rpl= " +
			"profile= recstart= recend= limit= header= arg-sep= arg-file-sep= id= semaphorename= semaphoretimeout= st= transferfile= tf=", joined: true,
	},
	"pkexec":       {long: "user="},
	"proxychains":  {short: "f:"},
	"proxychains4": {short: "f:"},
	"rlwrap":       {short: "C:D:f:H:l:M:O:P:q:s:S:t:w:z:g:b:a::m::p::"},
	"run0":         {short: "u:g:D:", long: "user= group= chdir= unit= property= description= slice= nice= setenv= background= machine= shell-prompt-prefix="},
	"runuser": { // as su, but with -u it runs a command
		short: "c:g:G:s:u:w:", long: "command= session-command= group= supp-group= shell= user= whitelist-environment=", operands: all, text: "c command session-command",
	},
	"script": {
		short: "c:I:O:B:T:E:o:m:t::", long: "command= log-in= log-out= log-io= log-timing= echo= output-limit= logging-format=", operands: all, text: "c command",
	},
	"setarch":         {operands: 1, lead: isArch},
	"setpriv":         {long: "reuid= regid= groups= inh-caps= ambient-caps= bounding-set= securebits= pdeathsig= selinux-label= apparmor-profile="},
	"systemd-inhibit": {long: "what= who= why= mode="},
	"sg":              {short: "c:", operands: 1, text: "c", joined: true},
	"sshpass":         {short: "p:f:d:P:"},
	"strace": {
		short: "a:b:e:E:I:o:O:p:P:s:S:u:U:X:", long: "abbrev= argv0= attach= columns= const-print-style= detach-on= env= fault= inject= interruptible= kvm= output= raw= read= " +
			"signal= status= string-limit= summary summary-columns= summary-sort-by= summary-syscall-overhead= trace= trace-fds= trace-path= user= verbose= write=",
	},
	"su": {
		short: "c:g:G:s:w:", long: "command= session-command= group= supp-group= shell= whitelist-environment=", operands: all, text: "c command session-command",
	},
	"sudo": {
		short: "a:C:c:D:g:h:p:R:r:T:t:U:u:", sets: true,
		long: "close-from= chdir= group= host= other-user= prompt= chroot= role= type= user= command-timeout= auth-type= login-class=",
	},
	"systemd-run": {
		short: "H:M:u:p:E:", long: "host= machine= unit= property= description= slice= nice= working-directory= uid= gid= setenv= service-type= on-active= on-boot= on-startup= " +
			"on-unit-active= on-unit-inactive= on-calendar= path-property= socket-property= timer-property= background= expand-environment= job-mode=",
	},
	"unshare": {
		short: "R:w:S:G:l:", long: "root= wd= setuid= setgid= map-user= map-group= map-users= map-groups= propagation= setgroups= monotonic= boottime= load-interp= owner=",
	},
	"valgrind": {},
	"watch":    {short: "n:q:s:", long: "interval= equexit= shotsdir=", joined: true},
	"xargs":    {short: "a:d:E:I:n:L:P:s:e::i::l::", long: "arg-file= delimiter= max-args= max-chars= max-procs= process-slot-var="},
}

// starters are the options behind which programs that look for files run a command for each.
var starters = map[string]string{
	"find": "-exec -execdir -ok -okdir", "fd": "-x -X --exec --exec-batch", "fdfind": "-x -X --exec --exec-batch",
}
