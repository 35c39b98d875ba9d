package main

import (
	"github.com/spf13/cobra"

	"weir/internal/runner"
)

// relayCommand is the process in a session that listens for its model's clients.
func (s *system) relayCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "guard-relay SOCKET",
		Hidden:      true,
		Args:        args(1, 1, "a socket"),
		Annotations: map[string]string{"as": "weir guard"},
		RunE:        func(_ *cobra.Command, argv []string) error { return runner.Relay(argv[0], s.stdin, s.stdout) },
	}
}

// initCommand is the stub that becomes a guarded command.
func (s *system) initCommand() *cobra.Command {
	var uid, gid uint32
	var groups []uint
	var write runner.Write
	cmd := &cobra.Command{
		Use:         "guard-init",
		Hidden:      true,
		Args:        args(1, -1, "a command"),
		Annotations: map[string]string{"as": "weir guard"},
		RunE: func(_ *cobra.Command, argv []string) error {
			return runner.Init(uid, gid, groups, write, argv, s.environ)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.Uint32Var(&uid, "uid", 0, "run as this uid")
	f.Uint32Var(&gid, "gid", 0, "run with this gid")
	f.UintSliceVar(&groups, "groups", nil, "run with these groups")
	f.StringArrayVar(&write.Dirs, "write", nil, "let it change files in this directory, and no others")
	f.StringArrayVar(&write.Files, "write-file", nil, "let it change this file as well")
	return cmd
}
