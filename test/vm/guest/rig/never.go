//go:build vmguest

package rig

import _ "embed"

// Never is a program for python3 -c: see there. It needs the modules fuse and overlay, and /dev/fuse for everybody.
//
//go:embed never.py
var Never string

// User begins the command line of an ordinary user.
func User() []string { return []string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"} }
