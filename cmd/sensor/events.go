package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
)

func (s *system) eventsCommand() *cobra.Command {
	var filter event.Filter
	var kinds []string
	var since, file string
	var follow bool
	cmd := &cobra.Command{
		Use:   "events",
		Short: "show the event log, or with -f events as they happen",
		Args:  args(0, 0, ""),
		Example: `  weir events -f
  weir events --kind hold,verdict --since 10m
  weir events --container web-1 --text curl --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, k := range kinds {
				if !slices.Contains(event.Kinds(), event.Kind(k)) {
					return usage(cmd, "unknown kind %q: the kinds are %s", k, event.KindNames())
				}
				filter.Kinds = append(filter.Kinds, event.Kind(k))
			}
			var err error
			if filter.Since, err = parseSince(since, time.Now()); err != nil {
				return usage(cmd, "%w", err)
			}
			if file != "" && follow {
				return usage(cmd, "-f follows a running sensor, --file reads a file: give one of them")
			}
			return s.events(cmd.Context(), filter, follow, file)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "show events as they come")
	f.StringSliceVar(&kinds, "kind", nil, "only these `kinds`, separated by commas")
	f.StringVar(&filter.Container, "container", "", "only this `container`: id, name or cgroup")
	f.StringVar(&since, "since", "", "only since this `time`: 10m (ago), or 2026-01-31T12:00:00Z")
	f.StringVar(&filter.Text, "text", "", "only events that contain this `text`")
	f.StringVar(&file, "file", "", "read this log `file` instead of asking the sensor")
	completeFlag(cmd, "kind", event.Kinds())
	return cmd
}

func (s *system) events(ctx context.Context, filter event.Filter, follow bool, file string) error {
	show := func(e event.Event) error {
		return s.answer(e, func(w io.Writer) { event.Print(w, e) })
	}
	read := func(file string) error {
		if filter.Container != "" {
			if has, err := event.Has(file, filter.Container); err == nil && !has {
				return fmt.Errorf("unknown container %q: %s has no event of it", filter.Container, file)
			}
		}
		return event.ReadFile(file, filter, show)
	}
	if file != "" {
		return read(file)
	}
	err := s.client().Events(ctx, filter, follow, show)
	if errors.Is(err, control.ErrNotRunning) && !follow {
		if _, statErr := os.Stat(s.log); statErr == nil {
			s.note("weir events: no sensor is running: this is %s; read another log with --file", s.log)
			return read(s.log)
		}
		return fmt.Errorf("%w, or read an event log with --file: there is none at %s", err, s.log)
	}
	return err
}

// parseSince reads a moment, or how long ago it was.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(s); err == nil {
		return now.Add(-max(ago, -ago)), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, control.Errorf(control.Usage, "--since %q is no time: give 10m, or 2026-01-31T12:00:00Z", s)
}
