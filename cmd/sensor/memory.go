package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/memory"
)

func (s *system) memoryCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "keep notes that agents may recall; no agent writes them",
		Args:  s.subcommand,

		PersistentPreRunE: s.ofSensor("dir", "memory"),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", wire.State+"/memory", "`folder` of the stores, if not the sensor's own: plain files STORE/KEY.md")
	open := func() *memory.Memory { return memory.New(dir) }
	cmd.AddCommand(s.memoryImport(open), s.memoryList(open), s.memoryShow(open), s.memoryRemove(open))
	return cmd
}

func (s *system) memoryImport(open func() *memory.Memory) *cobra.Command {
	var key string
	var to memory.Marks
	cmd := &cobra.Command{
		Use:     "import STORE FILE…",
		Short:   "copy files into a store, each as the entry of its name; - is standard input",
		Example: "  weir memory import notes todo.md\n  weir memory import tickets --foreign export/*.md",
		Args:    args(2, -1, "a store and files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, store, files := open(), args[0], args[1:]
			if key != "" && len(files) != 1 {
				return usage(cmd, "--key names one entry: give one file")
			}
			if cmd.Flags().Changed("secret") || cmd.Flags().Changed("foreign") { // before anybody can recall what is imported
				if err := m.Mark(store, to); err != nil {
					return err
				}
			}
			done := []string{}
			for _, file := range files {
				name := key
				if name == "" {
					name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".md"), ".txt")
				}
				text, err := s.readNote(file)
				if err == nil {
					err = m.Import(store, name, text)
				}
				if err != nil {
					return fmt.Errorf("%w (imported before it: %s)", err, orNone(done))
				}
				done = append(done, name)
			}
			return s.answer(map[string]any{"store": store, "imported": done}, func(w io.Writer) {
				fmt.Fprintf(w, "imported into %s: %s\n", store, strings.Join(done, ", "))
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "`name` of the entry, where the file's will not do")
	cmd.Flags().BoolVar(&to.Secret, "secret", false, "the store holds what must not leave: who recalls it becomes tainted secret")
	cmd.Flags().BoolVar(&to.Foreign, "foreign", false, "others write what the store holds: who recalls it becomes tainted corruption")
	return cmd
}

func (s *system) readNote(file string) (string, error) {
	const most = 2 << 20 // more than an entry may have
	if file == "-" {
		data, err := io.ReadAll(io.LimitReader(s.stdin, most))
		return string(data), err
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(file + " is not a file")
	}
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	return string(data), nil
}

func (s *system) memoryList(open func() *memory.Memory) *cobra.Command {
	return &cobra.Command{
		Use:   "list [STORE]",
		Short: "list the stores, or the entries of one",
		Args:  args(0, 1, ""),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				entries, err := open().Entries(args[0])
				if err != nil {
					return err
				}
				return s.answer(entries, func(w io.Writer) {
					rows := [][]string{}
					for _, e := range entries {
						rows = append(rows, []string{e.Key, fmt.Sprint(e.Bytes), e.Changed.Format(time.RFC3339)})
					}
					table(w, []string{"KEY", "BYTES", "CHANGED"}, rows)
				})
			}
			stores, err := open().Stores()
			if err != nil {
				return err
			}
			return s.answer(stores, func(w io.Writer) {
				rows := [][]string{}
				for _, st := range stores {
					marks := []string{}
					if st.Secret {
						marks = append(marks, "secret")
					}
					if st.Foreign {
						marks = append(marks, "foreign")
					}
					rows = append(rows, []string{st.Store, fmt.Sprint(st.Entries), orNone(marks)})
				}
				table(w, []string{"STORE", "ENTRIES", "MARKS"}, rows)
			})
		},
	}
}

func (s *system) memoryShow(open func() *memory.Memory) *cobra.Command {
	return &cobra.Command{
		Use:   "show STORE KEY",
		Short: "print an entry, with what does not print made visible",
		Args:  args(2, 2, "a store and a key"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := open().Text(args[0], args[1])
			if err != nil {
				return err
			}
			return s.answer(map[string]any{"store": args[0], "key": args[1], "text": text}, func(w io.Writer) {
				for line := range strings.Lines(text) {
					fmt.Fprintln(w, event.Visible(strings.TrimSuffix(line, "\n")))
				}
			})
		},
	}
}

func (s *system) memoryRemove(open func() *memory.Memory) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "rm STORE [KEY]",
		Short: "remove an entry; with --all, the whole store",
		Args:  args(1, 2, "a store and a key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := ""
			if len(args) == 2 {
				key = args[1]
			}
			if (key == "") != all {
				return usage(cmd, "give a key, or --all without one")
			}
			if err := open().Remove(args[0], key); err != nil {
				return err
			}
			what := strings.Join(args, "/")
			return s.answer(map[string]any{"removed": what}, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", what) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "the store with all its entries")
	return cmd
}
