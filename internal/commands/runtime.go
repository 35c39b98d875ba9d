package commands

const runsAny = "runs a program in a language that can do everything"

// runtimeTools are commands that run programs in a language, or other programs.
var runtimeTools = []*Command{
	{
		Names: "python# pypy# micropython", Class: Network, Stop: true, Short: "bBdEhiIOPqsSuvVxc:m:W:X:?",
		Lead: []Role{Read}, NoLead: "-c -m", Rest: Data, Facts: Runtime, Check: checkVersion,
		Why: runsAny + "; --version alone is local, as it starts no interpreter", Example: "python3 script.py",
	},
	{
		Names: "node nodejs", Class: Network, Stop: true, Short: "e:p:r:ichv", Long: "eval= print= require= import= loader= version",
		Lead: []Role{Read}, NoLead: "-e -p --eval --print", Rest: Data, Facts: Runtime, Check: checkVersion,
		Why: runsAny + "; --version alone is local, as it starts no program", Example: "node app.js",
	},
	{Names: "perl#", Class: Network, Stop: true, Short: "e:E:M:m:I:F:i::l::0::C::x::acdfnpstTuUvVwWX", Lead: []Role{Read}, NoLead: "-e -E", Rest: Data, Facts: Runtime, Why: runsAny, Example: "perl -ne 'print if /x/' f"},
	{Names: "ruby# jruby irb erb rake# rails truffleruby", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "ruby app.rb"},
	{Names: "php# phpdbg php-cgi hhvm artisan", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "php -r 'echo 1;'"},
	{Names: "lua# luajit texlua luac# deno bun tsx ts-node esno qjs quickjs d8 jsc rhino gjs cjs osascript", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "deno run main.ts"},
	{Names: "ipython# jupyter jupyter-lab jupyter-notebook papermill streamlit gunicorn uvicorn flask django-admin celery ptpython bpython", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "jupyter notebook"},
	{Names: "tclsh# wish# expect R Rscript julia octave octave-cli matlab maxima gap sage gp bconsole", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "Rscript plot.R"},
	{Names: "java javaw jshell jrunscript groovy groovysh scala scala-cli kotlin kotlinc ki clojure jython nashorn", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "java -jar app.jar"},
	{Names: "ghc ghci runghc runhaskell ocaml ocamlrun utop swipl sbcl clisp ecl ccl guile# racket chicken csi gsi scheme elixir iex erl escript gforth factor-lang crystal nim nimble raku perl6 rakudo zig tcc", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "guile -s x.scm"},
	{Names: "powershell.exe cmd.exe wine wine64 mono fsi wscript cscript mshta wsl wsl.exe", Class: Network, Rest: Data, Facts: Runtime, Why: runsAny, Example: "mono app.exe"},
	{Names: "gdb gdb-multiarch lldb strace ltrace perf bpftrace bpftool valgrind rr radare2 r2 frida", Class: Network, Rest: Data, Facts: Runtime, Why: "runs or changes other programs, and has a language that can do everything", Example: "gdb -batch prog"},
	{Names: "vi vim# vimdiff view ex ed nvim nano pico emacs emacsclient joe jed micro helix hx kak code codium rvim vipw vigr rnano mcedit", Class: Network, Rest: Data, Facts: Runtime, Why: "an editor that runs programs", Example: "vim -c q notes.txt"},
	{Names: "script scriptreplay watch parallel at batch crontab systemd-run systemctl service run-parts start-stop-daemon screen tmux byobu dtach abduco entr flock nsenter unshare chroot setpriv capsh runuser su pkexec fakeroot proot bwrap firejail daemonize nodemon pm2 supervisord supervisorctl forever runit sv s6-svc", Class: Network, Rest: Data, Facts: Runtime, Why: "runs other programs, now or later", Example: "watch -n1 date"},
	{Names: "dc m4 sqlfluff mypy pyright", Class: Grey, AnyArgs: true, Rest: Data, Why: "runs plug-ins or programs that its input or configuration names"},
}

// checkVersion accepts what only prints the version: the interpreter is not started.
func checkVersion(c *Call) {
	if len(c.Words) == 1 && c.Words[0].Fixed && Listed("--version", c.Words[0].Text) ||
		len(c.Words) == 1 && c.Words[0].Is("-V") && c.Name[0] == 'p' || len(c.Words) == 1 && c.Words[0].Is("-v") && c.Name[0] == 'n' {
		c.Become(Local)
	}
}
