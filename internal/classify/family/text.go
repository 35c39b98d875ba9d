package family

import (
	"weir/internal/classify/sublang"
	"weir/internal/classify/table"
)

// anyText is why the commands of coreutils and their like are local for every argument.
const anyText = "reads files or its input and prints; nothing it can be given runs code, connects or writes"

var textCommands = []*table.Command{
	{Names: "cat", Class: table.Local, AnyArgs: true, Rest: table.Read, Why: anyText, Example: "cat -n go.mod"},
	{Names: "tac", Class: table.Local, AnyArgs: true, Short: "brs:", Long: "separator= before regex", Rest: table.Read, Why: anyText, Example: "tac log.txt"},
	{Names: "rev", Class: table.Local, AnyArgs: true, Rest: table.Read, Why: anyText, Example: "rev words.txt"},
	{
		Names: "head tail", Class: table.Local, AnyArgs: true, Short: "c:n:s:qvzfF", Long: "bytes= lines= pid= sleep-interval= max-unchanged-stats= follow=?",
		Number: true, Rest: table.Read, Why: anyText, Example: "head -20 README.md",
	},
	{Names: "wc", Class: table.Local, AnyArgs: true, Long: "files0-from= total=", Rest: table.Read, Why: anyText, Example: "wc -l main.go"},
	{Names: "nl", Class: table.Local, AnyArgs: true, Short: "b:d:f:h:i:l:n:ps:v:w:", Rest: table.Read, Why: anyText, Example: "nl -ba main.go"},
	{Names: "cut", Class: table.Local, AnyArgs: true, Short: "b:c:d:f:nsz", Long: "bytes= characters= delimiter= fields= output-delimiter= complement only-delimited", Rest: table.Read, Why: anyText, Example: "cut -d: -f1 /etc/passwd"},
	{Names: "paste", Class: table.Local, AnyArgs: true, Short: "d:sz", Long: "delimiters= serial", Rest: table.Read, Why: anyText, Example: "paste -sd, names.txt"},
	{Names: "column", Class: table.Local, AnyArgs: true, Short: "tn:O:N:l:E:deH:R:T:W:LJr:i:p:c:o:s:x", Rest: table.Read, Why: anyText, Example: "column -t -s, table.csv"},
	{Names: "comm", Class: table.Local, AnyArgs: true, Long: "output-delimiter=", Rest: table.Read, Why: anyText, Example: "comm -12 a.txt b.txt"},
	{Names: "join", Class: table.Local, AnyArgs: true, Short: "a:e:ij:o:t:v:1:2:z", Rest: table.Read, Why: anyText, Example: "join a.txt b.txt"},
	{Names: "expand unexpand", Class: table.Local, AnyArgs: true, Short: "ait:", Long: "tabs=", Rest: table.Read, Why: anyText, Example: "expand -t4 main.go"},
	{Names: "fmt fold", Class: table.Local, AnyArgs: true, Short: "bcg:p:stuw:", Long: "width= goal= prefix=", Rest: table.Read, Why: anyText, Example: "fold -s -w 72 notes.txt"},
	{Names: "pr", Class: table.Local, AnyArgs: true, Short: "acdD:e::Fh:i::Jl:mn::N:o:rs::S::tTvw:W:", Rest: table.Read, Why: anyText, Example: "pr -t -2 list.txt"},
	{Names: "tr", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: anyText, Example: "tr a-z A-Z"},
	{Names: "colrm col ul tsort look", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: anyText, Example: "col -b"},
	{Names: "envsubst", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "replaces variables in its input; prints only", Example: "envsubst '$HOME'"},
	{Names: "seq", Class: table.Local, AnyArgs: true, Short: "f:s:w", Number: true, Rest: table.Data, Why: "prints numbers", Example: "seq 1 10"},
	{Names: "yes", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "prints its words again and again", Example: "yes no"},
	{Names: "expr factor numfmt", Class: table.Local, AnyArgs: true, Rest: table.Data, Why: "computes and prints", Example: "expr 1 + 2"},
	{
		Names: "diff", Class: table.Local, AnyArgs: true, Short: "qsC:cU:uenyW:pF:tTlrNx:X:S:iEZbwBI:aD:dv", Long: "context=? unified=? width= show-function-line= label= tabsize= exclude= exclude-from= starting-file= from-file= to-file= ignore-matching-lines= ifdef= horizon-lines= color=? palette=",
		Rest: table.Read, Why: "compares files and prints; at most it runs pr (-l), without anything of the caller's", Example: "diff -u a.txt b.txt",
	},
	{Names: "cmp", Class: table.Local, AnyArgs: true, Short: "bi:ln:sv", Rest: table.Read, Why: anyText, Example: "cmp a.bin b.bin"},
	{Names: "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum", Class: table.Local, AnyArgs: true, Short: "a:bcl:tz", Long: "algorithm= length=", Rest: table.Read, Why: anyText, Example: "sha256sum go.sum"},
	{Names: "base64 base32 basenc", Class: table.Local, AnyArgs: true, Short: "diw:", Long: "wrap=", Rest: table.Read, Facts: table.Encoder, Why: anyText, Example: "base64 -d data.b64"},
	{Names: "od", Class: table.Local, AnyArgs: true, Short: "A:j:N:S:t:w::abcdfhiloxsv", Rest: table.Read, Facts: table.Encoder, Why: anyText, Example: "od -An -tx1 data.bin"},
	{Names: "hexdump hd", Class: table.Local, AnyArgs: true, Short: "bcCde:f:n:os:vx", Rest: table.Read, Facts: table.Encoder, Why: anyText, Example: "hexdump -C data.bin"},
	{
		Names: "jq", Class: table.Local, AnyArgs: true, Exact: true, Short: "nRsrjaSCMcefL:h0", Long: "from-file= arg= argjson= slurpfile= rawfile= indent=",
		Lead: []table.Role{table.Data}, NoLead: "--from-file", Rest: table.Read,
		Why: "no filter or module of jq can run a program, connect or write, whatever file it comes from", Example: "jq -r '.name' package.json",
	},
	{
		Names: "bc", Class: table.Local, AnyArgs: true, Rest: table.Read,
		Why: "no program of bc can run another, connect or write, whatever file it comes from", Example: "bc -l",
	},
	{
		Names: "zcat", Class: table.Local, Short: "fqv", Rest: table.Read,
		Why: "unpacks files by gzip to its output", Example: "zcat log.gz",
	},
	{
		Names: "sort", Class: table.Local,
		Short: "bdfgiMhnRrVcCk:mo:sS:t:T:uz",
		Long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort " +
			"numeric-sort random-sort random-source= reverse sort= version-sort batch-size= check=? debug files0-from= key= merge output= " +
			"stable buffer-size= field-separator= temporary-directory= parallel= unique zero-terminated help version",
		Values: []table.Value{
			{Options: "-o --output -T --temporary-directory", Role: table.Write},
			{Options: "--random-source --files0-from", Role: table.Read},
		},
		Refuse:  []table.Refusal{{Options: "--compress-program=", Why: "sort runs the program that is named here", Class: table.Network}},
		Rest:    table.Read,
		Why:     "sorts its input; without --compress-program it runs nothing, and writes only where -o and -T say",
		Example: "sort -k2,2n -u names.txt",
	},
	{
		Names: "shuf", Class: table.Local, Short: "ei:n:o:rz", Long: "echo input-range= head-count= output= random-source= repeat zero-terminated help version",
		Values: []table.Value{{Options: "-o --output", Role: table.Write}, {Options: "--random-source", Role: table.Read}},
		Rest:   table.Read, Why: "shuffles lines; writes only where -o says", Example: "shuf -n 3 names.txt",
	},
	{
		Names: "uniq", Class: table.Local, Stop: true, Short: "cdDf:is:uzw:", Number: true,
		Long: "count repeated all-repeated=? skip-fields= group=? ignore-case skip-chars= unique zero-terminated check-chars= help version",
		Lead: []table.Role{table.Read, table.Write}, Max: 2,
		Why: "drops repeated lines; the second operand is a file that is written", Example: "uniq -c",
	},
	{
		Names: "iconv", Class: table.Local, Short: "f:t:lco:s?V",
		Long:   "from-code= to-code= list output= silent verbose help usage version",
		Values: []table.Value{{Options: "-o --output", Role: table.Write}},
		Rest:   table.Read, Facts: table.Encoder,
		Why: "converts encodings with what the system has; GCONV_PATH, which would load code, is not accepted", Example: "iconv -f latin1 -t utf-8 old.txt",
	},
	{
		Names: "sed", Class: table.Local,
		Short: "nrEsuzi::e:l:",
		Long:  "quiet silent regexp-extended separate unbuffered null-data zero-terminated in-place=? expression= line-length= debug sandbox follow-symlinks help version",
		Refuse: []table.Refusal{
			{Options: "-f --file=", Why: "the script stands in a file that is not seen here"},
			{Options: "--posix", Why: "the script is then read in another way"},
		},
		Check:   checkSed,
		Why:     "edits text by a script that is read to its end: e and s///e run programs, w and -i write",
		Example: "sed -n '10,20p' main.go",
	},
	{
		Names: "awk gawk mawk nawk original-awk", Class: table.Local, Stop: true, Exact: true,
		Short: "F:v:", Long: "field-separator= assign=",
		Refuse: []table.Refusal{
			{Options: "-f --file=", Why: "the program stands in a file that is not seen here"},
			{Options: "-E --exec=", Why: "the program stands in a file that is not seen here"},
			{Options: "-e --source=", Why: "gawk alone has this option"},
			{Options: "-i --include= -l --load=", Why: "gawk loads code with this option"},
			{Options: "-W", Why: "mawk can read a program from a file with this option"},
			{Options: "-o --pretty-print -p --profile -d --dump-variables -D --debug", Why: "gawk writes a file or starts its debugger with this option"},
		},
		Lead: []table.Role{table.Code}, Rest: table.Read, Language: sublang.Awk, Check: checkAwk,
		Why:     "runs a program that is read to its end: system(), pipes and gawk's /inet files are not accepted, print > writes",
		Example: "awk -F: '$3 > 999 {print $1}' /etc/passwd",
	},
	{
		Names: "xxd", Class: table.Local, Raw: true, Check: checkXxd, Facts: table.Encoder,
		Why: "dumps or restores bytes; the second operand is a file that is written", Example: "xxd -l 64 data.bin",
	},
	{
		Names: "less", Class: table.Local, Raw: true, Check: checkLess,
		Why:     "shows files; only options without a value are accepted, since some load key files and programs, and +COMMAND runs one",
		Example: "less -R notes.txt",
	},
	{
		Names: "strings", Class: table.Local, Short: "adfn:t:wos:e:U:hvV", Number: true,
		Long: "all data print-file-name bytes= radix= include-all-whitespace encoding= unicode= output-separator= help version",
		Rest: table.Read, Check: noResponseFile,
		Why: "prints text found in files; @FILE, which reads options, is not accepted", Example: "strings -n 8 data.bin",
	},
	{
		Names: "readelf", Class: table.Local, Short: "ahlSgtesnrudVAcDIWx:p:R:zTCHvX",
		Long: "all file-header program-headers segments section-headers sections section-groups section-details headers syms symbols dyn-syms " +
			"notes relocs unwind dynamic version-info arch-specific archive-index use-dynamic hex-dump= string-dump= relocated-dump= decompress " +
			"histogram wide silent-truncation demangle=? no-demangle help version",
		Refuse: []table.Refusal{{Options: "-w -P --debug-dump --process-links", Why: "readelf may fetch debugging data from the network for this option"}},
		Rest:   table.Read, Check: noResponseFile,
		Why: "prints what is in ELF files; options that follow links to debugging data, and @FILE, are not accepted", Example: "readelf -hW prog",
	},
}
