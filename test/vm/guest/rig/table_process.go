//go:build vmguest

package rig

import (
	"testing"
)

// cgroupAttempts leave the place that the taint hangs on (B28, B29, B53).
func cgroupAttempts() []Attempt {
	aside := func(t testing.TB, _ *Env) { Must(t, "mkdir -p "+cgroupRoot+"/aside") }
	// who says its number has unshared
	link := "dev=mv{port}; ip link add link {dev} name $dev type macvlan mode bridge; read -r pid < <(unshare -n bash -c 'echo $$; exec sleep 600'); " +
		"ip link set $dev netns $pid || { kill $pid; exit 3; }; nsenter -t $pid -n sh -c \"ip addr add 10.77.0.9/24 dev $dev; ip link set $dev up; "
	return []Attempt{
		{ID: "B28", Name: "move-root", Argv: egress("move -cgroup " + cgroupRoot + " -to {to}")},
		{ID: "B28", Name: "move-aside", Argv: egress("move -cgroup " + cgroupRoot + "/aside -to {to}"), Prepare: aside},
		{ID: "B28", Name: "move-aside-udp", Argv: egress("move -cgroup " + cgroupRoot + "/aside -then udp-sendto -to {to}"), Prepare: aside},
		{ID: "B28", Name: "clone-into", Argv: egress("into -cgroup " + cgroupRoot + "/aside -to {to}"), Prepare: aside},
		{ID: "B28", Name: "clone-into-udp", Argv: egress("into -cgroup " + cgroupRoot + "/aside -then udp-sendto -to {to}"), Prepare: aside},
		{ID: "B28", Name: "child-cgroup", Argv: egress("nest -n 1 -to {to}")},
		{ID: "B53", Name: "nest20", Argv: egress("nest -n 20 -to {to}")},
		{ID: "B53", Name: "nest20-udp", Argv: egress("nest -n 20 -then udp-sendto -to {to}")},
		{ID: "B53", Name: "nest40", Argv: egress("nest -n 40 -to {to}")},
		{ID: "B53", Name: "nest40-icmp", Argv: egress("nest -n 40 -then raw-icmp -to {to}")},
		{ID: "B29", Name: "user-namespace", Argv: append([]string{"unshare", "-Ur"}, egress("tcp -to {to}")...)},
		{ID: "B29", Name: "all-namespaces", Argv: append([]string{"unshare", "-Urmpif"}, egress("tcp -to {to}")...)},
		{ID: "B29", Name: "net-namespace-tcp", Argv: shell(link + "sleep 0.3; egress tcp -to {to} -say {say}\"; e=$?; kill $pid; exit $e")},
		{ID: "B29", Name: "net-namespace-udp", Argv: shell(link + "ip neigh add {world} lladdr {mac} dev $dev; egress udp-sendto -to {to} -say {say}\"; e=$?; kill $pid; exit $e")},
		{ID: "B29", Name: "net-namespace-packet", Argv: shell(link + "egress packet -dev $dev -mac {mac} -to {to} -say {say}\"; e=$?; kill $pid; exit $e")},
		{ID: "B29", Name: "setns-loopback", Argv: append([]string{"nsenter", "--net=/run/netns/" + netns}, egress("tcp -to 127.0.0.1:{port}")...)},
		{ID: "B29", Name: "setns-loopback-udp", Argv: append([]string{"nsenter", "--net=/run/netns/" + netns}, egress("udp-sendto -to 127.0.0.1:{port}")...)},
	}
}

// processAttempts use other processes (B30, B37, B38, B40) and other entries into the kernel (B41).
func processAttempts() []Attempt {
	var victim *Proc
	prepare := func(t testing.TB, e *Env) {
		victim = e.Helper(t, "egress", "victim", "-say", "untouched", "-to", e.Words["to"])
		e.words(t, victim, "victim", "pid", "mem")
	}
	ended := func(t testing.TB, _ *Env, _ Result) {
		victim.Input(t, "\n")
		victim.Wait(t)
	}
	var all []Attempt
	for _, how := range []string{"ptrace-attach", "ptrace-seize", "vm-writev", "proc-mem"} {
		words := how + " -pid {pid} -mem {mem}"
		all = append(all, Attempt{ID: "B30", Name: how, Indirect: true, Argv: egress(words), Prepare: prepare, Ended: ended})
		if how != "vm-writev" {
			older := late("B30", how+"-older", words, "open")
			older.Indirect, older.Clean, older.Prepare, older.Ended = true, true, prepare, ended
			all = append(all, older)
		}
	}
	// somebody outside sends on whatever comes through a pipe
	pipe := func(t testing.TB, e *Env) {
		e.words(t, e.Helper(t, "bash", "-c", "sleep 600 | { echo reader $BASHPID; exec socat -u - UDP:"+e.Words["to"]+"; }"), "reader", "pid")
	}
	passedOn := func(t testing.TB, e *Env, r Result) {
		if r.Exit == 0 {
			e.Outside.WaitGot(e.Text, Late) // with the sensor it does not come
		}
	}
	user := []string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"}
	const dir = "/usr/local/lib/egress"
	install := func(t testing.TB, _ *Env) {
		Must(t, "test -e "+dir+" && exit; mkdir -p "+dir+" && cp $(type -P egress) "+dir+"/setuid && chmod 4755 "+dir+"/setuid && "+
			"cp $(type -P egress) "+dir+"/caps && setcap cap_net_raw,cap_net_admin+ep "+dir+"/caps && "+
			"echo 'agent ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/agent && chmod 440 /etc/sudoers.d/agent")
	}
	all = append(all,
		Attempt{ID: "B30", Name: "proc-fd", Indirect: true, Argv: shell("echo {say} >/proc/{pid}/fd/0"), Prepare: pipe, Ended: passedOn},
		Attempt{ID: "B30", Name: "traceme", Argv: egress("ptrace-traceme -to {to}")},
		Attempt{ID: "B30", Name: "clone-vm", Argv: egress("twin -to {to}")},
		late("B30", "clone-vm-older", "twin -to {to}", "socket"),
		Attempt{ID: "B37", Name: "daemon", Argv: egress("daemon -n 2 -after 1s -to {to}"), Quiet: true},
		Attempt{ID: "B37", Name: "daemon-udp", Argv: egress("daemon -n 2 -after 1s -then udp-sendto -to {to}"), Quiet: true},
		Attempt{ID: "B37", Name: "sleep", Argv: egress("sleep -after 1s -to {to}")},
		Attempt{ID: "B38", Name: "sigcont", Argv: egress("sigcont -n 250 -to {to}")},
		Attempt{ID: "B38", Name: "sigcont-udp", Argv: egress("sigcont -n 250 -then udp-sendto -to {to}")},
		Attempt{ID: "B40", Name: "user", Argv: append(user, egress("tcp -to {to}")...)},
		Attempt{ID: "B40", Name: "setuid", Prepare: install, Argv: append(user, dir+"/setuid", "raw-icmp", "-to", "{to}", "-say", "{say}")},
		Attempt{ID: "B40", Name: "setuid-tcp", Prepare: install, Argv: append(user, dir+"/setuid", "tcp", "-to", "{to}", "-say", "{say}")},
		Attempt{ID: "B40", Name: "capabilities", Prepare: install, Argv: append(user, dir+"/caps", "packet", "-dev", "{dev}", "-mac", "{mac}", "-to", "{to}", "-say", "{say}")},
		Attempt{ID: "B40", Name: "sudo", Prepare: install, Argv: append(user, append([]string{"sudo", "-n", "env", "PATH={path}"}, egress("tcp -to {to}")...)...)},
	)
	for _, how := range []string{"tcp", "udp-sendto", "udp-sendmsg", "udp-sendmmsg", "udp-connect", "fastopen", "raw-icmp"} {
		argv := egress(how + " -to {to}")
		argv[0] += ".386"
		all = append(all, Attempt{ID: "B41", Name: "i386-" + how, Argv: argv})
	}
	connected := late("B41", "i386-connected", "tcp -to {to}", "connect")
	connected.Argv[0] += ".386"
	all = append(all, connected)
	for _, entry := range []string{"x32", "int80"} {
		for _, how := range []string{"tcp", "udp"} {
			all = append(all, Attempt{ID: "B41", Name: entry + "-" + how, Argv: egress(entry + "-" + how + " -to {to}")})
		}
		all = append(all,
			Attempt{ID: "B41", Name: entry + "-tcp6", Argv: egress(entry + "-tcp -to {to6}")},
			late("B41", entry+"-connected", entry+"-tcp -to {to}", "connect"),
		)
	}
	return all
}
