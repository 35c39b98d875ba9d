package daemon

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/policy"
)

// What weir mode said goes before every policy, also those that sessions brought.
func TestModeIsForAll(t *testing.T) {
	base, own := policy.Default(), policy.Default()
	base.Mode, own.Mode, own.IPC = policy.Enforce, policy.Observe, "/ipc"
	p := newActivePolicy(base)
	p.SetOwn("g-one", own)
	type state struct {
		Mode, One, Other policy.Mode
		IPC              string
	}
	look := func() state {
		if one, two := p.ModeOf("g-one"), p.ModeOf("g-two"); one != p.InMode(p.For("g-one")).Mode || two != p.InMode(p.For("g-two")).Mode {
			t.Errorf("the mode of one is %s, of another %s", one, two)
		}
		return state{p.Mode(), p.InMode(p.For("g-one")).Mode, p.InMode(p.For("g-two")).Mode, p.For("g-one").IPC}
	}
	if diff := cmp.Diff(state{policy.Enforce, policy.Observe, policy.Enforce, "/ipc"}, look()); diff != "" {
		t.Errorf("by policy: want - got +\n%s", diff)
	}
	if before := p.Say(policy.Seal); before != "" {
		t.Errorf("before: %q", before)
	}
	if diff := cmp.Diff(state{policy.Seal, policy.Seal, policy.Seal, "/ipc"}, look()); diff != "" {
		t.Errorf("said: want - got +\n%s", diff)
	}
	if before := p.Say(""); before != policy.Seal {
		t.Errorf("before: %q", before)
	}
	base.Mode = policy.Observe
	p.SetBase(base)
	if !p.DropOwn("g-one") || p.DropOwn("g-one") {
		t.Error("a session's policy is dropped once")
	}
	if diff := cmp.Diff(state{policy.Observe, policy.Observe, policy.Observe, ""}, look()); diff != "" {
		t.Errorf("dropped: want - got +\n%s", diff)
	}
}

// No verdict outlives a change of the mode or of the policy that is in force: both change the version.
func TestVersionFollowsWhatIsInForce(t *testing.T) {
	base := policy.Default()
	p := newActivePolicy(base)
	seen := map[string]string{}
	look := func(what string) {
		_, v := p.InForce("g-one")
		if before := seen[v]; before != "" {
			t.Errorf("%s has the version of %s", what, before)
		}
		seen[v] = what
	}
	look("the base policy")
	p.Say(policy.Seal)
	look("mode seal")
	p.Say("")
	base.ApprovalTTL++
	p.SetBase(base)
	look("a new base policy")
	own := base
	own.ApprovalTTL++
	p.SetOwn("g-one", own)
	look("a policy of its own")
	p.DropOwn("g-one")
	if _, v := p.InForce("g-one"); seen[v] != "a new base policy" {
		t.Errorf("without its own: the version of %q", seen[v])
	}
}

// BenchmarkInForce is what each question and each call of a hook pays for its policy.
func BenchmarkInForce(b *testing.B) {
	base := policy.Default()
	base.Taint.Untrusted = true
	p := newActivePolicy(base)
	for b.Loop() {
		p.InForce("g-one")
	}
}

func TestVersionIsOfWhatItSays(t *testing.T) {
	a, b := policy.Default(), policy.Default()
	if policyVersion(a) != policyVersion(b) {
		t.Error("the same policy has two versions")
	}
	b.ApprovalTTL++
	if policyVersion(a) == policyVersion(b) {
		t.Error("a change has the same version")
	}
}

func TestConfiguredResolversAreTaken(t *testing.T) {
	want := []netip.Addr{netip.MustParseAddr("192.0.2.53")}
	if got := resolversOf(want); len(got) != 1 || got[0] != want[0] {
		t.Errorf("got %v", got)
	}
}
