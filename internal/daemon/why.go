package daemon

import (
	"context"
	"errors"
	"io/fs"

	"weir/internal/control"
	"weir/internal/event"
)

// maxHistory bounds the changes of one container's taint that are told.
const maxHistory = 200

// Why implements control.Reader.
func (d *daemon) Why(_ context.Context, name string) (control.Why, error) {
	st, err := d.state.Find(name)
	if err != nil {
		return control.Why{}, err
	}
	y := control.Why{Container: d.told(st), Causes: d.state.Causes(st.ID)}
	file := d.policies.Base().Events.File
	if y.NoLog = file == ""; y.NoLog {
		return y, nil
	}
	err = history(&y, file, st.ID)
	return y, err
}

// history adds what is kept of the log about a container's taint, and what the log has from before anything of it was kept.
func history(y *control.Why, file, id string) error {
	var kept, older []event.Event
	read := func(file string, into *[]event.Event, wanted func(event.Event) bool) error {
		err := event.ReadFile(file, event.Filter{Kinds: []event.Kind{event.Taint}, Container: id}, func(e event.Event) error {
			if e.Container.ID != id || !wanted(e) {
				return nil
			}
			if *into = append(*into, e); len(*into) > maxHistory {
				*into, y.Older = (*into)[1:], true
			}
			return nil
		})
		var bad *event.BadLines
		if errors.As(err, &bad) {
			y.Unread, err = y.Unread+bad.Count, nil
		}
		return err
	}
	if err := read(event.KeptFile(file), &kept, func(event.Event) bool { return true }); err != nil {
		return err
	}
	if len(kept) < maxHistory {
		err := read(file, &older, func(e event.Event) bool { return len(kept) == 0 || e.Time.Before(kept[0].Time) })
		if err != nil && (len(kept) == 0 || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	y.History = append(older, kept...)
	if over := len(y.History) - maxHistory; over > 0 {
		y.History, y.Older = y.History[over:], true
	}
	return nil
}
