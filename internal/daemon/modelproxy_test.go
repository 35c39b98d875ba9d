package daemon

import (
	"testing"

	"weir/internal/control"
)

// However many are refused, all are counted, some are told of, and the next that is says how many were not.
func TestModelRefusals(t *testing.T) {
	m := newModelRefusals()
	m.told.SetLimit(0)
	told := 0
	for range 1000 {
		if _, tell := m.count("model_path"); tell {
			told++
		}
	}
	if m.Counts()["model_path"] != 1000 || told != refusalsAtOnce {
		t.Errorf("%v, %d told", m.Counts(), told)
	}
	m.told.SetLimit(1e9)
	if untold, tell := m.count("model_host"); !tell || untold != 1000-refusalsAtOnce {
		t.Errorf("%d, %v", untold, tell)
	}
	if untold, tell := m.count("model_host"); !tell || untold != 0 {
		t.Errorf("%d, %v", untold, tell)
	}
	if err := new(daemon).ModelRefused(t.Context(), control.ModelRefusal{Code: "untainted"}); control.Code(err) != control.Usage {
		t.Error(err)
	}
}
