package netegress

import (
	"slices"
	"testing"
)

// TestF45Calls: each call that opens no destination has a name of its own, and what is no such call has none.
func TestF45Calls(t *testing.T) {
	var seen []string
	for code := range uint8(len(calls) + 2) {
		for _, reason := range []egressReason{egressReasonREASON_ATTACH, egressReasonREASON_KERNEL} {
			call := recordOf(&egressRecord{Reason: reason, Dest: egressDest{Proto: code}}).Call
			if known := code > 0 && int(code) <= len(calls); call == "" || known == (call == "unknown") {
				t.Errorf("call %d is %q", code, call)
			}
			if reason == egressReasonREASON_ATTACH {
				seen = append(seen, call)
			}
		}
		if call := recordOf(&egressRecord{Reason: egressReasonREASON_TAINTED, Dest: egressDest{Proto: code}}).Call; call != "" {
			t.Errorf("a connect with protocol %d is the call %q", code, call)
		}
	}
	slices.Sort(seen)
	if n := len(slices.Compact(seen)); n != len(calls)+1 {
		t.Errorf("%d names for %d calls: %q", n, len(calls), seen)
	}
	if call := recordOf(&egressRecord{Reason: egressReasonREASON_FAMILY, Dest: egressDest{Proto: uint8(peersCallCALL_TUN)}}).Call; call != "socket" {
		t.Errorf("a refused socket family is the call %q", call)
	}
}
