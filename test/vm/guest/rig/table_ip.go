//go:build vmguest

package rig

import (
	"fmt"
	"testing"
)

// toolAttempts are those of programs that every machine has (B10).
func toolAttempts() []Attempt {
	python := "import socket\n"
	return []Attempt{
		{ID: "B10", Name: "bash-tcp", Argv: shell("echo {say} >/dev/tcp/{world}/{port}")},
		{ID: "B10", Name: "bash-udp", Argv: shell("echo {say} >/dev/udp/{world}/{port}")},
		{ID: "B10", Name: "python-tcp", Argv: []string{"python3", "-c", python + "socket.create_connection(('{world}', {port})).sendall(b'{say}')"}},
		{ID: "B10", Name: "python-udp", Argv: []string{"python3", "-c", python + "socket.socket(2, 2).sendto(b'{say}', ('{world}', {port}))"}},
		{ID: "B10", Name: "perl-tcp", Argv: []string{"perl", "-MSocket", "-e", "socket(S, AF_INET, SOCK_STREAM, 0); connect(S, pack_sockaddr_in({port}, inet_aton('{world}'))) or die \"$!\"; syswrite S, '{say}'"}},
		{ID: "B10", Name: "gawk-tcp", Argv: []string{"gawk", "BEGIN { s = \"/inet/tcp/0/{world}/{port}\"; print \"{say}\" |& s; close(s, \"to\") }"}},
		{ID: "B10", Name: "curl", Argv: shell("curl -sm30 http://{to}/{say}; e=$?; [ $e = 28 ] && exit 0; exit $e"), Started: untilArrived},
		{ID: "B10", Name: "wget", Argv: shell("wget -qO- -t1 -T30 http://{to}/{say} || :"), Quiet: true, Started: untilArrived},
		{ID: "B10", Name: "busybox-wget", Argv: shell("timeout --foreground 30 busybox wget -qO- http://{to}/{say} || :"), Quiet: true, Started: untilArrived},
		{ID: "B10", Name: "nc", Argv: shell("echo {say} | nc -N -w30 {world} {port}")},
		{ID: "B10", Name: "nc-udp", Argv: shell("echo {say} | timeout 8 nc -u -q1 {world} {port}")},
		{ID: "B10", Name: "socat", Argv: shell("echo {say} | socat -u - TCP:{to}")},
	}
}

// ipAttempts are calls that end in TCP and UDP (B13 to B16).
func ipAttempts() []Attempt {
	var all []Attempt
	for _, f := range []struct{ name, to string }{{"4", "{to}"}, {"6", "{to6}"}} {
		for _, how := range []string{"sendto", "sendmsg", "sendmmsg", "cork", "gso", "other", "connect"} {
			all = append(all, Attempt{ID: "B13", Name: "udp" + f.name + "-" + how, Argv: egress("udp-" + how + " -to " + f.to)})
		}
		for _, how := range []string{"fastopen", "fastopen-sendmsg", "fastopen-connect", "tcp-repair"} {
			all = append(all, Attempt{ID: "B15", Name: how + f.name, Argv: egress(how + " -to " + f.to)})
		}
		all = append(all,
			Attempt{ID: "B13", Name: "udplite" + f.name, Argv: egress("udplite -to " + f.to)},
			Attempt{ID: "B16", Name: "mptcp" + f.name, Network: "mptcp", Argv: egress("mptcp -to " + f.to)},
		)
	}
	all = append(all,
		Attempt{ID: "B13", Name: "udp4-unspec", Argv: egress("udp-unspec -to {to}")},
		Attempt{ID: "B14", Name: "tcp4", Argv: egress("tcp -to {to}")},
		Attempt{ID: "B14", Name: "tcp6", Argv: egress("tcp -to {to6}")},
		Attempt{ID: "B14", Name: "tcp-mapped", Argv: egress("tcp -to {mapped}")},
		Attempt{ID: "B14", Name: "tcp-link-local", Argv: egress("tcp -to {link}")},
		Attempt{ID: "B14", Name: "udp-mapped", Argv: egress("udp-sendto -to {mapped}")},
		Attempt{ID: "B14", Name: "udp-mapped-connect", Argv: egress("udp-connect -to {mapped}")},
		Attempt{ID: "B14", Name: "udp-link-local", Argv: egress("udp-sendto -to {link}")},
		Attempt{ID: "B14", Name: "udp6-in4", Argv: egress("udp-in4 -to {to}")},
		Attempt{ID: "B15", Name: "fastopen-mapped", Argv: egress("fastopen -to {mapped}")},
	)
	connected := late("B16", "mptcp-connected", "mptcp -to {to}", "connect")
	connected.Network = "mptcp"
	subflow := connected
	subflow.Name = "mptcp-subflow"
	subflow.Resume = func(t testing.TB, _ *Env) {
		Must(t, "ip mptcp limits set subflow 2 && ip mptcp endpoint add 10.77.1.1 dev "+Dev+" subflow")
	}
	subflow.Ended = func(t testing.TB, _ *Env, _ Result) { Must(t, "ip mptcp endpoint flush") }
	return append(all, connected, subflow)
}

// olderAttempts use what was opened before (B21), also for a child (B44) and for a peer that connects in (B46).
func olderAttempts() []Attempt {
	var all []Attempt
	for _, by := range []string{"write", "writev", "send", "oob", "sendmsg", "zerocopy", "sendfile", "splice", "vmsplice", "aio"} {
		all = append(all, late("B21", "tcp4-"+by, "tcp -to {to} -by "+by, "connect"))
	}
	for _, by := range []string{"write", "sendmsg", "sendfile", "splice", "aio"} {
		all = append(all, late("B21", "udp4-"+by, "udp-connect -to {to} -by "+by, "connect"))
	}
	all = append(all,
		late("B21", "tcp6", "tcp -to {to6}", "connect"),
		late("B21", "tcp-mapped", "tcp -to {mapped}", "connect"),
		late("B21", "udp6", "udp-connect -to {to6}", "connect"),
		late("B21", "tcp-unconnected", "tcp -to {to}", "socket"),
		late("B21", "udp-unconnected", "udp-sendto -to {to}", "socket"),
		late("B44", "inherited", "exec -to {to}", "open"),
	)
	for _, s := range []struct{ attempt, name, network, at string }{
		{"serve", "serve4", "tcp", "{own}"}, {"serve", "serve6", "tcp", "{own6}"},
		{"serve-udp", "serve-udp4", "udp", "{own}"}, {"serve-udp", "serve-udp6", "udp", "{own6}"},
	} {
		all = append(all, Attempt{
			ID: "B46", Name: s.name, Opens: true, Argv: egress(s.attempt + " -after 6s -to " + s.at),
			Resume: func(t testing.TB, e *Env) {
				at := fmt.Sprintf("%s:%d", Own, e.Port)
				if s.at == "{own6}" {
					at = fmt.Sprintf("[%s]:%d", Own6, e.Port)
				}
				e.Outside.World.Dial(t, s.network, at)
			},
		})
	}
	return all
}
