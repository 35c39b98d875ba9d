package commands

import "strings"

func checkCurl(c *Call) {
	for _, name := range []string{"-T", "--upload-file", "-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "-F", "--form", "--json"} {
		o, ok := c.Option(name)
		if !ok {
			continue
		}
		c.Flags |= Upload
		v := o.Value
		if i := strings.IndexByte(v.Text, '@'); v.Fixed && i >= 0 && name != "--data-raw" && name != "-T" && name != "--upload-file" {
			v.Text, _, _ = strings.Cut(v.Text[i+1:], ";")
			c.Read(v)
		}
	}
}

func checkWget(c *Call) {
	if _, ok := c.Option("--post-data", "--post-file", "--body-data", "--body-file"); ok {
		c.Flags |= Upload
	}
}

func checkListen(c *Call) {
	if _, ok := c.Option("-l", "-L", "--listen"); ok {
		port, given := c.Option("-p")
		if !given && len(c.Operands) > 0 {
			port.Value = c.Operands[len(c.Operands)-1]
		}
		c.Listen(port.Value)
	}
	if o, ok := c.Option("-e", "-c", "--exec", "--sh-exec", "--lua-exec"); ok {
		c.Network(o.Word, "network", "connects a program to the network")
	}
}

func checkSocat(c *Call) {
	for _, w := range c.Words {
		kind, at, _ := strings.Cut(w.Text, ":")
		kind = strings.ToUpper(kind)
		if strings.HasSuffix(kind, "-LISTEN") || strings.HasSuffix(kind, "-L") || strings.HasSuffix(kind, "-RECVFROM") {
			w.Text, _, _ = strings.Cut(at, ",")
			c.Listen(w)
		}
	}
}

// checkRemote tells host:path from path.
func checkRemote(c *Call) {
	for i, w := range c.Operands {
		host, path, ok := strings.Cut(w.Text, ":")
		switch {
		case ok && !strings.Contains(host, "/"), strings.Contains(w.Text, "://"):
			if _, at, user := strings.Cut(host, "@"); user && !strings.Contains(path, "//") {
				w.Text = at
			} else if !strings.Contains(w.Text, "://") {
				w.Text = host
			}
			c.Host(w)
		case i > 0 && i == len(c.Operands)-1:
			c.Write(w)
		default:
			c.Read(w)
		}
	}
}

// checkOpenssl notes servers and hosts.
func checkOpenssl(c *Call) {
	if len(c.Words) > 0 && (c.Words[0].Is("s_server") || c.Words[0].Is("ocsp")) {
		c.Flags |= Listen
	}
	for i, w := range c.Words {
		if i+1 < len(c.Words) && Listed("-connect -host -proxy -url", w.Text) {
			c.Host(c.Words[i+1])
		}
	}
}
