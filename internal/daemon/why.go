package daemon

import (
	"context"
	"errors"

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

// history adds what is kept of the log about a container's taint.
func history(y *control.Why, file, id string) error {
	err := event.ReadFile(event.KeptFile(file), event.Filter{Kinds: []event.Kind{event.Taint}, Container: id}, func(e event.Event) error {
		if e.Container.ID != id {
			return nil
		}
		if y.History = append(y.History, e); len(y.History) > maxHistory {
			y.History, y.Older = y.History[1:], true
		}
		return nil
	})
	var bad *event.BadLines
	if errors.As(err, &bad) {
		y.Unread, err = bad.Count, nil
	}
	return err
}
