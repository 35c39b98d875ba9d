package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"weir/internal/linux"
)

// LoadPlace reads what StorePlace stored, and says whether there is anything.
func LoadPlace(file string, into any) (there bool, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return false, fmt.Errorf("read where the events go on: %w: remove %s to send the whole log again", err, file)
	}
	return true, nil
}

// StorePlace keeps where in a log who carries it on was, in a file that is whole at any time.
func StorePlace(file string, place any) error {
	data, err := json.Marshal(place)
	if err == nil {
		err = linux.WriteFileAtomic(file, data)
	}
	if err != nil {
		return fmt.Errorf("store where the events go on: %w", err)
	}
	return nil
}

// Again does something each time that there is news, and else now and then; after a failure in a second, and then less and less often, up to
// most. It tells when that begins to fail, and when it works again. It ends with ctx.
func Again(ctx context.Context, say func(string), what string, news <-chan struct{}, every, most time.Duration, do func(context.Context) error) {
	failing, wait := "", time.Second
	for ctx.Err() == nil {
		err := do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && failing != "":
			failing = ""
			say(what + ": they go on")
		case err != nil && err.Error() != failing:
			failing = err.Error()
			say(what + ": " + Plain(err))
		}
		pause, heard := every, news
		if err != nil {
			pause, heard, wait = wait, nil, min(2*wait, most)
		} else {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
		case <-heard:
		case <-time.After(pause):
		}
	}
}
