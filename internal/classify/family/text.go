package family

import (
	"weir/internal/classify/table"
)

var textCommands = []*table.Command{
	{
		Names: "cat", Class: table.Local, AnyArgs: true,
		Short: "AbeEnstTuv", Long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
		Rest:    table.Read,
		Why:     "prints files, for any argument",
		Example: "cat -n go.mod",
	},
	{
		Names: "grep egrep fgrep", Class: table.Local, AnyArgs: true,
		Short: "aA:bB:cC:d:D:e:Ef:FGhHiIlLm:noPqrRsTuUvVwxyzZ", Number: true,
		Long: "after-context= before-context= binary-files= byte-offset color=? colour=? context= count dereference-recursive " +
			"devices= directories= exclude= exclude-dir= exclude-from= extended-regexp file= files-with-matches files-without-match " +
			"fixed-strings help ignore-case include= initial-tab invert-match label= line-buffered line-number line-regexp max-count= " +
			"no-filename no-ignore-case no-messages null null-data only-matching perl-regexp quiet recursive regexp= silent text " +
			"version with-filename word-regexp",
		Values:  []table.Value{{Options: "-f --file --exclude-from", Role: table.Read}},
		Lead:    []table.Role{table.Data},
		NoLead:  "-e -f --regexp --file",
		Rest:    table.Read,
		Env:     "GREP_COLOR GREP_COLORS",
		Why:     "searches files, for any argument",
		Example: "grep -rn --include='*.go' main .",
	},
}
