package commands

// anyText is why the commands of coreutils and their like are local for every argument.
const anyText = "reads files or its input and prints; nothing it can be given runs code, connects or writes"

var textCommands = []*Command{
	{Names: "cat", Class: Local, AnyArgs: true, Rest: Read, Why: anyText, Example: "cat -n go.mod"},
	{Names: "tac", Class: Local, AnyArgs: true, Short: "brs:", Long: "separator= before regex", Rest: Read, Why: anyText, Example: "tac log.txt"},
	{Names: "rev", Class: Local, AnyArgs: true, Rest: Read, Why: anyText, Example: "rev words.txt"},
	{
		Names: "head tail", Class: Local, AnyArgs: true, Short: "c:n:s:qvzfF", Long: "bytes= lines= pid= sleep-interval= max-unchanged-stats= follow=?",
		Number: true, Rest: Read, Why: anyText, Example: "head -20 README.md",
	},
	{Names: "wc", Class: Local, AnyArgs: true, Long: "files0-from= total=", Rest: Read, Why: anyText, Example: "wc -l main.go"},
	{Names: "nl", Class: Local, AnyArgs: true, Short: "b:d:f:h:i:l:n:ps:v:w:", Rest: Read, Why: anyText, Example: "nl -ba main.go"},
	{Names: "cut", Class: Local, AnyArgs: true, Short: "b:c:d:f:nsz", Long: "bytes= characters= delimiter= fields= output-delimiter= complement only-delimited", Rest: Read, Why: anyText, Example: "cut -d: -f1 /etc/passwd"},
	{Names: "paste", Class: Local, AnyArgs: true, Short: "d:sz", Long: "delimiters= serial", Rest: Read, Why: anyText, Example: "paste -sd, names.txt"},
	{Names: "column", Class: Local, AnyArgs: true, Short: "tn:O:N:l:E:deH:R:T:W:LJr:i:p:c:o:s:x", Rest: Read, Why: anyText, Example: "column -t -s, table.csv"},
	{Names: "comm", Class: Local, AnyArgs: true, Long: "output-delimiter=", Rest: Read, Why: anyText, Example: "comm -12 a.txt b.txt"},
	{Names: "join", Class: Local, AnyArgs: true, Short: "a:e:ij:o:t:v:1:2:z", Rest: Read, Why: anyText, Example: "join a.txt b.txt"},
	{Names: "expand unexpand", Class: Local, AnyArgs: true, Short: "ait:", Long: "tabs=", Rest: Read, Why: anyText, Example: "expand -t4 main.go"},
	{Names: "fmt fold", Class: Local, AnyArgs: true, Short: "bcg:p:stuw:", Long: "width= goal= prefix=", Rest: Read, Why: anyText, Example: "fold -s -w 72 notes.txt"},
	{Names: "pr", Class: Local, AnyArgs: true, Short: "acdD:e::Fh:i::Jl:mn::N:o:rs::S::tTvw:W:", Rest: Read, Why: anyText, Example: "pr -t -2 list.txt"},
	{Names: "tr", Class: Local, AnyArgs: true, Rest: Data, Why: anyText, Example: "tr a-z A-Z"},
	{Names: "colrm col ul tsort look", Class: Local, AnyArgs: true, Rest: Data, Why: anyText, Example: "col -b"},
	{Names: "envsubst", Class: Local, AnyArgs: true, Rest: Data, Why: "replaces variables in its input; prints only", Example: "envsubst '$HOME'"},
	{Names: "seq", Class: Local, AnyArgs: true, Short: "f:s:w", Number: true, Rest: Data, Why: "prints numbers", Example: "seq 1 10"},
	{Names: "yes", Class: Local, AnyArgs: true, Rest: Data, Why: "prints its words again and again", Example: "yes no"},
	{Names: "expr factor numfmt", Class: Local, AnyArgs: true, Rest: Data, Why: "computes and prints", Example: "expr 1 + 2"},
	{
		Names: "diff", Class: Local, AnyArgs: true, Short: "qsC:cU:uenyW:pF:tTlrNx:X:S:iEZbwBI:aD:dv", Long: "context=? unified=? width= show-function-line= label= tabsize= exclude= exclude-from= starting-file= from-file= to-file= ignore-matching-lines= ifdef= horizon-lines= color=? palette=",
		Rest: Read, Why: "compares files and prints; at most it runs pr (-l), without anything of the caller's", Example: "diff -u a.txt b.txt",
	},
	{Names: "cmp", Class: Local, AnyArgs: true, Short: "bi:ln:sv", Rest: Read, Why: anyText, Example: "cmp a.bin b.bin"},
	{Names: "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum", Class: Local, AnyArgs: true, Short: "a:bcl:tz", Long: "algorithm= length=", Rest: Read, Why: anyText, Example: "sha256sum go.sum"},
	{Names: "base64 base32 basenc", Class: Local, AnyArgs: true, Short: "diw:", Long: "wrap=", Rest: Read, Facts: Encoder, Why: anyText, Example: "base64 -d data.b64"},
	{Names: "od", Class: Local, AnyArgs: true, Short: "A:j:N:S:t:w::abcdfhiloxsv", Rest: Read, Facts: Encoder, Why: anyText, Example: "od -An -tx1 data.bin"},
	{Names: "hexdump hd", Class: Local, AnyArgs: true, Short: "bcCde:f:n:os:vx", Rest: Read, Facts: Encoder, Why: anyText, Example: "hexdump -C data.bin"},
	{
		Names: "jq", Class: Local, AnyArgs: true, Exact: true, Short: "nRsrjaSCMcefL:h0", Long: "from-file= arg= argjson= slurpfile= rawfile= indent=",
		Lead: []Role{Data}, NoLead: "--from-file", Rest: Read,
		Why: "no filter or module of jq can run a program, connect or write, whatever file it comes from", Example: "jq -r '.name' package.json",
	},
	{
		Names: "bc", Class: Local, AnyArgs: true, Rest: Read,
		Why: "no program of bc can run another, connect or write, whatever file it comes from", Example: "bc -l",
	},
	{
		Names: "zcat", Class: Local, Short: "fqv", Rest: Read,
		Why: "unpacks files by gzip to its output", Example: "zcat log.gz",
	},
	{
		Names: "sort", Class: Local,
		Short: "bdfgiMhnRrVcCk:mo:sS:t:T:uz",
		Long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort " +
			"numeric-sort random-sort random-source= reverse sort= version-sort batch-size= check=? debug files0-from= key= merge output= " +
			"stable buffer-size= field-separator= temporary-directory= parallel= unique zero-terminated help version",
		Values: []Value{
			{Options: "-o --output -T --temporary-directory", Role: Write},
			{Options: "--random-source --files0-from", Role: Read},
		},
		Refuse:  []Refusal{{Options: "--compress-program=", Why: "sort runs the program that is named here", Class: Network}},
		Rest:    Read,
		Why:     "sorts its input; without --compress-program it runs nothing, and writes only where -o and -T say",
		Example: "sort -k2,2n -u names.txt",
	},
	{
		Names: "shuf", Class: Local, Short: "ei:n:o:rz", Long: "echo input-range= head-count= output= random-source= repeat zero-terminated help version",
		Values: []Value{{Options: "-o --output", Role: Write}, {Options: "--random-source", Role: Read}},
		Rest:   Read, Why: "shuffles lines; writes only where -o says", Example: "shuf -n 3 names.txt",
	},
	{
		Names: "uniq", Class: Local, Stop: true, Short: "cdDf:is:uzw:", Number: true,
		Long: "count repeated all-repeated=? skip-fields= group=? ignore-case skip-chars= unique zero-terminated check-chars= help version",
		Lead: []Role{Read, Write}, Max: 2,
		Why: "drops repeated lines; the second operand is a file that is written", Example: "uniq -c",
	},
	{
		Names: "iconv", Class: Local, Short: "f:t:lco:s?V",
		Long:   "from-code= to-code= list output= silent verbose help usage version",
		Values: []Value{{Options: "-o --output", Role: Write}},
		Rest:   Read, Facts: Encoder,
		Why: "converts encodings with what the system has; GCONV_PATH, which would load code, is not accepted", Example: "iconv -f latin1 -t utf-8 old.txt",
	},
	{
		Names: "sed", Class: Local,
		Short: "nrEsuzi::e:l:",
		Long:  "quiet silent regexp-extended separate unbuffered null-data zero-terminated in-place=? expression= line-length= debug sandbox follow-symlinks help version",
		Refuse: []Refusal{
			{Options: "-f --file=", Why: "the script stands in a file that is not seen here"},
			{Options: "--posix", Why: "the script is then read in another way"},
		},
		Check:   checkSed,
		Why:     "edits text by a script that is read to its end: e and s///e run programs, w and -i write",
		Example: "sed -n '10,20p' main.go",
	},
	{
		Names: "awk gawk mawk nawk original-awk", Class: Local, Stop: true, Exact: true,
		Short: "F:v:", Long: "field-separator= assign=",
		Refuse: []Refusal{
			{Options: "-f --file=", Why: "the program stands in a file that is not seen here"},
			{Options: "-E --exec=", Why: "the program stands in a file that is not seen here"},
			{Options: "-e --source=", Why: "gawk alone has this option"},
			{Options: "-i --include= -l --load=", Why: "gawk loads code with this option"},
			{Options: "-W", Why: "mawk can read a program from a file with this option"},
			{Options: "-o --pretty-print -p --profile -d --dump-variables -D --debug", Why: "gawk writes a file or starts its debugger with this option"},
		},
		Lead: []Role{Code}, Rest: Read, Language: Awk, Check: checkAwk,
		Why:     "runs a program that is read to its end: system(), pipes and gawk's /inet files are not accepted, print > writes",
		Example: "awk -F: '$3 > 999 {print $1}' /etc/passwd",
	},
	{
		Names: "xxd", Class: Local, Raw: true, Check: checkXxd, Facts: Encoder,
		Why: "dumps or restores bytes; the second operand is a file that is written", Example: "xxd -l 64 data.bin",
	},
	{
		Names: "less", Class: Local, Raw: true, Check: checkLess,
		Why:     "shows files; only options without a value are accepted, since some load key files and programs, and +COMMAND runs one",
		Example: "less -R notes.txt",
	},
	{
		Names: "strings", Class: Local, Short: "adfn:t:wos:e:U:hvV", Number: true,
		Long: "all data print-file-name bytes= radix= include-all-whitespace encoding= unicode= output-separator= help version",
		Rest: Read, Check: noResponseFile,
		Why: "prints text found in files; @FILE, which reads options, is not accepted", Example: "strings -n 8 data.bin",
	},
	{
		Names: "readelf", Class: Local, Short: "ahlSgtesnrudVAcDIWx:p:R:zTCHvX",
		Long: "all file-header program-headers segments section-headers sections section-groups section-details headers syms symbols dyn-syms " +
			"notes relocs unwind dynamic version-info arch-specific archive-index use-dynamic hex-dump= string-dump= relocated-dump= decompress " +
			"histogram wide silent-truncation demangle=? no-demangle help version",
		Refuse: []Refusal{{Options: "-w -P --debug-dump --process-links", Why: "readelf may fetch debugging data from the network for this option"}},
		Rest:   Read, Check: noResponseFile,
		Why: "prints what is in ELF files; options that follow links to debugging data, and @FILE, are not accepted", Example: "readelf -hW prog",
	},
}
