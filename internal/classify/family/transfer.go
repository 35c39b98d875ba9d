package family

import "weir/internal/classify/table"

var transferCommands = []*table.Command{
	{
		Names: "curl", Class: table.Network,
		Short: "d:F:H:o:OT:X:u:sSLkfI", Long: "data= output= request= upload-file= url=",
		Values: []table.Value{
			{Options: "-o --output", Role: table.Write},
			{Options: "-T --upload-file", Role: table.Read},
			{Options: "--url", Role: table.Host},
		},
		Rest:    table.Host,
		Facts:   table.Download | table.Upload,
		Why:     "transfers data to or from a URL",
		Example: "curl -fsSL https://example.com/x",
	},
}
