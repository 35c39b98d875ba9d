//go:build vmguest

// Package session follows guarded sessions: taint, questions, grants, what people and kernels do to them, and a sensor that dies.
package session

import (
	"strconv"
	"strings"
	"testing"

	"weir/internal/gate"
	"weir/test/vm/guest/inside"
	"weir/test/vm/guest/rig"
)

func TestMain(m *testing.M) { inside.Main(m) }

// fixture is what all tests share: starting a sensor takes long in a VM.
type fixture struct {
	world  *rig.Outside
	sensor *rig.Sensor
}

func TestSession(t *testing.T) {
	f := &fixture{world: rig.NewOutside(t)}
	f.sensor = rig.StartSensor(t, "")
	for _, test := range []struct {
		name string
		run  func(*fixture, *testing.T)
	}{
		{"G4_untainted", (*fixture).untainted},
		{"B21_connected_before_the_taint", (*fixture).cut},
		{"B96_left_in_a_message", (*fixture).leftInMessage}, // while no task has left its container
		{"G16_held_and_answered", (*fixture).held},
		{"G16_programs", (*fixture).programs},
		{"G24_approved_command_only", (*fixture).approvedOnly},
		{"F01_G16_G24_narrow", (*fixture).narrow},
		{"F01_G7_passed_by_the_reviewer", (*fixture).passed},
		{"F01_G24_what_it_starts", (*fixture).descends},
		{"G24_each_destination_has_its_own_time", (*fixture).ownTime},
		{"G2_G24_claimed_where_it_taints", (*fixture).claimTaints},
		{"G24_cleared_taint_is_new", (*fixture).clearedTaint},
		{"G16_equal_askers", (*fixture).equals},
		{"F05_orphans_wait", (*fixture).orphaned},
		{"F01_F02_scope", (*fixture).scope},
		{"F01_F02_scope_of_many", (*fixture).scopeOfMany},
		{"F07_approvals_that_go_on", (*fixture).standing},
		{"F05_nobody_sees_it", (*fixture).unseen},
		{"F05_B38_signals", (*fixture).signals},
		{"B30_B37_B38_siblings", (*fixture).siblings},
		{"F01_G24_children_ask", (*fixture).children},
		{"F01_B15_B30_G16_an_approval_is_for_one", (*fixture).forOne},
		{"F01_F05_G24_threads", (*fixture).threads},
		{"F45_twins", (*fixture).twins},
		{"F05_G24_B37_waits_to_begin", (*fixture).waitsToBegin},
		{"F05_G16_two_wait_to_begin", (*fixture).beginTwins},
		{"G25_exec_events", (*fixture).execEvents},
		{"B36_daemon_outlives_its_command", (*fixture).outlives},
		{"B36_B37_orphan_of_a_command_that_ended_meanwhile", (*fixture).orphans},
		{"B37_leaves_a_cgroup", (*fixture).leavesCgroup},
		{"B37_open_socket_outlives_its_command", (*fixture).socketOutlives},
		{"B66_sockets_end_with_their_grant", (*fixture).socketCloses},
		{"B44_handed_to_the_ungranted", (*fixture).handed},
		{"B38_woken_by_its_family", (*fixture).woken},
		{"B38_storm", (*fixture).storm},
		{"B27_control_socket", (*fixture).controlSocket},
		{"B27_G17_roles", (*fixture).roles},
		{"B27_G17_console", (*fixture).console},
		{"B27_G17_console_of_names", (*fixture).consoleOfNames},
		{"B27_G17_console_and_another_user", (*fixture).consoleAndAnotherUser},
		{"B27_G17_top", (*fixture).top},
		{"B97_listed_no_more", (*fixture).listedNoMore},
		{"B98_tied_from_before", (*fixture).tiedFromBefore},
		{"B95_floods_leave_room", (*fixture).floodsLeaveRoom},
		{"B28_moves_out", (*fixture).movesOut},
		{"B37_moves_into_a_grant", (*fixture).movesIntoGrant},
		{"G3_ancestor", (*fixture).ancestor},
		{"B53_clean_below_tainted", (*fixture).cleanBelow},
		{"B51_escapes", (*fixture).escapes},
		{"G15_interactive_shell", (*fixture).shell},
		{"B52_types_for_the_shell_outside", (*fixture).typing},
		{"modes_of_the_policy", (*fixture).modesOfPolicy},
		{"modes", (*fixture).modes},
		{"G1_G15_B32_daemon_killed", (*fixture).killed},
		{"B32_policy_of_a_session_that_is_gone", (*fixture).lostSession},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(f, t) })
	}
}

// target is a place of one test, and who asks about it.
type target struct {
	rig.Place
	f *fixture
}

func (f *fixture) raw(t *testing.T) target { t.Helper(); return target{f.world.Raw(t), f} }

func (f *fixture) web(t *testing.T) target { t.Helper(); return target{f.world.Web(t), f} }

// asked waits for the question about this place.
func (to target) asked(t *testing.T) gate.Question {
	t.Helper()
	return to.f.sensor.Asked(t, to.About)
}

// again waits for a question about this place that is not old.
func (to target) again(t *testing.T, old gate.Question) gate.Question {
	t.Helper()
	return to.f.sensor.Asked(t, func(q gate.Question) bool { return to.About(q) && q.ID != old.ID })
}

// guard starts a session with a name of its own.
func (f *fixture) guard(t *testing.T, bits ...string) *rig.Session {
	t.Helper()
	name := "s" + strconv.Itoa(f.world.Port())
	if len(bits) == 0 {
		return f.sensor.Guard(t, name)
	}
	return f.sensor.Guard(t, name, "--taint", strings.Join(bits, ","))
}

// succeeded waits for a command that must not have noticed anything.
func succeeded(t *testing.T, p *rig.Proc, stdout string) {
	t.Helper()
	if r := p.Wait(t); r.Exit != 0 || !strings.Contains(r.Stdout, stdout) {
		t.Errorf("want exit 0 and %q, got %s", stdout, r)
	}
}

// refused waits for an attack program that must have got EPERM.
func refused(t *testing.T, p *rig.Proc) {
	t.Helper()
	if r := p.Wait(t); r.Exit != 3 || !strings.Contains(r.Stdout, "EPERM") {
		t.Errorf("want a refusal with EPERM, got %s", r)
	}
}
