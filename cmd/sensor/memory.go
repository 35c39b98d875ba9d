package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/internal/bridge/wire"
	"weir/internal/event"
	"weir/internal/memory"
	"weir/internal/permission"
)

func (s *system) memoryCommand() *cobra.Command {
	var dir string
	cmd := s.group(&cobra.Command{
		Use:               "memory",
		Short:             "keep notes that agents may recall; no agent writes them",
		PersistentPreRunE: s.ofSensor("dir", "memory"),
	})
	cmd.PersistentFlags().StringVar(&dir, "dir", wire.State+"/memory", "`folder` of the stores, if not the sensor's own: plain files STORE/KEY.md")
	open := func() *memory.Memory { return memory.New(dir) }
	cmd.AddCommand(s.memoryImport(open), s.memoryList(open), s.memoryShow(open), s.memoryRemove(open))
	return cmd
}

func (s *system) memoryImport(open func() *memory.Memory) *cobra.Command {
	var key string
	var replace bool
	var to memory.Marks
	cmd := &cobra.Command{
		Use:     "import STORE FILE…",
		Short:   "copy files into a store, each as the entry of its name; with --key, - is standard input",
		Example: "  weir memory import notes todo.md\n  weir memory import tickets --foreign export/*.md\n  weir memory import notes --key today --replace - < notes.txt",
		Args:    args(2, -1, "a store and files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, store, files := open(), args[0], args[1:]
			if cmd.Flags().Changed("key") && len(files) != 1 {
				return usage(cmd, "--key names one entry: give one file")
			}
			if err := permission.CheckKey(store); err != nil {
				return fmt.Errorf("the store: %w", err)
			}
			// All is looked at before anything is written.
			names, texts := make([]string, len(files)), make([]string, len(files))
			for i, file := range files {
				name := key
				if !cmd.Flags().Changed("key") {
					if file == "-" {
						return usage(cmd, "standard input has no name: give --key NAME")
					}
					name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".md"), ".txt")
				}
				if j := slices.Index(names, name); name != "" && j >= 0 {
					return usage(cmd, "%s and %s would both be the entry %s: import them one by one, with --key NAME", files[j], file, name)
				}
				err := permission.CheckKey(name)
				if err != nil && key == "" {
					err = fmt.Errorf("%s: %w: name the entry with --key NAME", file, err)
				}
				if err == nil {
					texts[i], err = s.readNote(file)
				}
				if err == nil && !replace {
					_, err = m.Text(store, name)
					switch {
					case err == nil:
						err = fmt.Errorf("%s: %w: give --replace to put the new text in its place", name, memory.ErrExists)
					case errors.Is(err, memory.ErrNoStore), errors.Is(err, memory.ErrNoEntry):
						err = nil
					}
				}
				if err != nil {
					return fmt.Errorf("nothing was imported: %w", err)
				}
				names[i] = name
			}
			// Before anybody can recall what is imported.
			if err := mark(cmd, m, store, to); err != nil {
				return err
			}
			put := m.Add
			if replace {
				put = m.Import
			}
			for i, name := range names {
				if err := put(store, name, texts[i]); err != nil {
					return fmt.Errorf("%w (imported before it: %s)", err, orNone(names[:i]))
				}
			}
			return s.answer(map[string]any{"store": store, "imported": names}, func(w io.Writer) {
				fmt.Fprintf(w, "imported into %s: %s\n", store, strings.Join(names, ", "))
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "`name` of the entry, instead of the file's")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace an existing entry")
	cmd.Flags().BoolVar(&to.Secret, "secret", false, "the store holds secrets: recalling one taints a container secret")
	cmd.Flags().BoolVar(&to.Foreign, "foreign", false, "others wrote what the store holds: recalling it taints a container corruption")
	return cmd
}

// mark sets the marks of a store that flags name, and leaves the others as they are.
func mark(cmd *cobra.Command, m *memory.Memory, store string, to memory.Marks) error {
	secret, foreign := cmd.Flags().Changed("secret"), cmd.Flags().Changed("foreign")
	if !secret && !foreign {
		return nil
	}
	now, err := m.Marks(store)
	if err != nil && !errors.Is(err, memory.ErrNoStore) {
		return err
	}
	if secret {
		now.Secret = to.Secret
	}
	if foreign {
		now.Foreign = to.Foreign
	}
	return m.Mark(store, now)
}

// readNote reads what may become an entry. A link is not followed: who can write beside a file to import could have any other read.
func (s *system) readNote(file string) (string, error) {
	from, what := s.stdin, "standard input"
	if file != "-" {
		f, err := openPlain(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		from, what = f, file
	}
	data, err := io.ReadAll(io.LimitReader(from, memory.MaxEntry+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", what, cause(err))
	case len(data) > memory.MaxEntry:
		return "", fmt.Errorf("%s has more than %d bytes: import it in parts", what, memory.MaxEntry)
	case !utf8.Valid(data):
		return "", fmt.Errorf("%s is not UTF-8: convert it first, with iconv", what)
	}
	return string(data), nil
}

// openPlain opens a file that is neither a link nor anything that a reader could wait for.
func openPlain(file string) (*os.File, error) {
	plain := func(info fs.FileInfo, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", file, cause(err))
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link: name the file that it leads to, or give - and --key NAME to import standard input", file)
		case info.IsDir():
			return fmt.Errorf("%s is a folder: name the files in it", file)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no plain file: give - and --key NAME to import standard input", file)
		}
		return nil
	}
	if err := plain(os.Lstat(file)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, cause(err))
	}
	err = plain(f.Stat()) // it may be another one by now
	if err == nil && f.SetReadDeadline(time.Time{}) == nil {
		err = fmt.Errorf("%s is no plain file, since a reader may have to wait for it: give - and --key NAME to import standard input", file) // such as /proc/kmsg
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// cause is an error without the path that its text begins with.
func cause(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

// hint says where an operator finds what is there.
func hint(err error) error {
	if errors.Is(err, memory.ErrNoStore) || errors.Is(err, memory.ErrNoEntry) {
		return fmt.Errorf("%w: see weir memory list", err)
	}
	return err
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
					return hint(err)
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
		Short: "print an entry, with invisible characters made visible",
		Args:  args(2, 2, "a store and a key"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := open().Text(args[0], args[1])
			if err != nil {
				return hint(err)
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
				return hint(err)
			}
			what := strings.Join(args, "/")
			return s.answer(map[string]any{"removed": what}, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", what) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "the store with all its entries")
	return cmd
}
