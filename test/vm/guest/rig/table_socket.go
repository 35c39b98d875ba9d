//go:build vmguest

package rig

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rawAttempts write headers themselves (B17), or whole frames (B18).
func rawAttempts() []Attempt {
	var all []Attempt
	for _, f := range []struct{ name, to string }{{"4", "{to}"}, {"6", "{to6}"}} {
		for _, how := range []string{"raw-icmp", "ping", "raw-udp", "raw-header", "raw-connected"} {
			all = append(all, Attempt{ID: "B17", Name: how + f.name, Argv: egress(how + " -to " + f.to)})
			all = append(all, late("B17", how+f.name+"-older", how+" -to "+f.to, "socket"))
		}
		all = append(all, late("B17", "raw"+f.name+"-connected-older", "raw-connected -to "+f.to, "connect"))
		for _, how := range []string{"packet", "packet-dgram", "packet-ring", "xdp"} {
			words := how + " -dev {dev} -mac {mac} -to " + f.to
			all = append(all, Attempt{ID: "B18", Name: how + f.name, Argv: egress(words)})
			all = append(all, late("B18", how+f.name+"-older", words, "socket"))
		}
	}
	return append(all,
		late("B18", "packet-ring-open", "packet-ring -dev {dev} -mac {mac} -to {to}", "open"),
		late("B18", "xdp-open", "xdp -dev {dev} -mac {mac} -to {to}", "open"),
	)
}

// familyAttempts use protocols and socket families that few know (B19).
func familyAttempts() []Attempt {
	all := []Attempt{
		{ID: "B19", Name: "sctp4", Modules: []string{"sctp"}, Network: "sctp", Argv: egress("sctp -to {to}")},
		{ID: "B19", Name: "sctp6", Modules: []string{"sctp"}, Network: "sctp", Argv: egress("sctp -to {to6}")},
		{ID: "B19", Name: "sctp-many", Modules: []string{"sctp"}, Network: "sctp", Argv: egress("sctp-many -to {to}")},
		{ID: "B19", Name: "dccp4", Modules: []string{"dccp_ipv4", "dccp_ipv6"}, Network: "dccp", Argv: egress("dccp -to {to}")},
		{ID: "B19", Name: "dccp6", Modules: []string{"dccp_ipv4", "dccp_ipv6"}, Network: "dccp", Argv: egress("dccp -to {to6}")},
		{ID: "B19", Name: "l2tp", Modules: []string{"l2tp_ip"}, Argv: egress("l2tp -to {to}")},
		{
			ID: "B19", Name: "vsock", Modules: []string{"vsock", "vsock_loopback"}, Network: "none", Argv: egress("vsock -to 1:{port}"),
			Prepare: func(t testing.TB, e *Env) { e.Outside.Here.Listen(t, "vsock", e.Words["port"]) },
		},
		{
			ID: "B19", Name: "tipc", Modules: []string{"tipc"}, Network: "none", Argv: egress("tipc -to {port}"),
			Prepare: func(t testing.TB, e *Env) { e.Outside.Here.Listen(t, "tipc", e.Words["port"]) },
		},
	}
	calls := func(name, words, wait string) Attempt {
		a := late("B62", name, words, wait)
		a.Network, a.Creates, a.Modules = "none", true, []string{"vsock", "vsock_loopback", "tipc"}
		a.Prepare = func(t testing.TB, e *Env) { e.Outside.Here.Listen(t, "vsock", e.Words["port"]) }
		return a
	}
	for _, by := range []string{"setsockopt", "getsockopt", "recv", "shutdown"} {
		all = append(all, calls("vsock-"+by, "vsock-call -to 1:{port} -by "+by, "connect"))
	}
	all = append(all, calls("vsock-bind", "vsock-serve", "socket"), calls("vsock-listen", "vsock-serve", "connect"), calls("vsock-accept", "vsock-serve", "open"),
		calls("tipc-bind", "tipc-bind -to {port}", "socket"))
	for _, n := range []struct {
		name  string
		proto int
	}{{"route", 0}, {"user", 2}} {
		all = append(all, Attempt{
			ID: "B19", Name: "netlink-peer-" + n.name, Network: "none", Argv: egress(fmt.Sprintf("netlink-peer -proto %d -to {peer}", n.proto)),
			Prepare: func(t testing.TB, e *Env) {
				e.Words["peer"] = e.Outside.Here.Listen(t, "netlink", fmt.Sprint(n.proto))
			},
		})
	}
	for _, s := range []struct {
		name, module        string
		family, kind, proto int
	}{
		{"sock-diag", "", 16, 3, 4}, {"netlink-audit", "", 16, 3, 9}, {"netlink-connector", "", 16, 2, 11},
		{"netlink-netfilter", "nfnetlink", 16, 3, 12}, {"netlink-generic", "", 16, 3, 16}, {"netlink-xfrm", "xfrm_user", 16, 3, 6},
		{"key", "af_key", 15, 3, 2}, {"alg", "af_alg", 38, 5, 0}, {"rds", "rds", 21, 5, 0}, {"rxrpc", "rxrpc", 33, 2, 2},
		{"kcm", "kcm", 41, 2, 0}, {"appletalk", "appletalk", 5, 2, 0}, {"can", "can-raw", 29, 3, 1}, {"phonet", "phonet", 35, 2, 0},
		{"qrtr", "qrtr", 42, 2, 0}, {"llc", "llc2", 26, 2, 0}, {"ieee802154", "ieee802154_socket", 36, 2, 0}, {"ax25", "ax25", 3, 2, 0},
	} {
		a := Attempt{ID: "B19", Name: "create-" + s.name, Network: "none", Creates: true,
			Argv: egress(fmt.Sprintf("socket -family %d -type %d -proto %d", s.family, s.kind, s.proto))}
		if s.module != "" {
			a.Modules = []string{s.module}
		}
		all = append(all, a)
	}
	return all
}

// uringAttempts let the kernel's own threads make the calls (B20).
func uringAttempts() []Attempt {
	var all []Attempt
	for _, f := range []struct{ name, flag string }{{"", ""}, {"-sqpoll", " -sqpoll"}} {
		for _, how := range []string{"tcp", "udp", "sendto", "socket"} {
			all = append(all, Attempt{ID: "B20", Name: "uring-" + how + f.name, Argv: egress("uring-" + how + " -to {to}" + f.flag)})
			all = append(all, late("B20", "uring-"+how+f.name+"-older", "uring-"+how+" -to {to}"+f.flag, "open"))
		}
		all = append(all,
			Attempt{ID: "B20", Name: "uring-tcp6" + f.name, Argv: egress("uring-tcp -to {to6}" + f.flag)},
			late("B20", "uring-connected"+f.name, "uring-tcp -to {to}"+f.flag, "connect"),
			late("B20", "uring-late"+f.name, "uring-late -to {to}"+f.flag, "connect"),
		)
	}
	return all
}

// handedAttempts use sockets that a process outside opened (B22).
func handedAttempts() []Attempt {
	passer := func(t testing.TB, e *Env, p *Proc) {
		if p.WaitLine("listening", Late) == "" {
			return
		}
		// nobody comes in to a tainted container
		e.Helper(t, "egress", "pass", "-to", e.Words["to"], "-path", e.Words["socket"]).WaitLine("connected", Late)
	}
	holder := func(t testing.TB, e *Env) {
		e.words(t, e.Helper(t, "egress", "hold", "-to", e.Words["to"]), "holding", "pid", "fd")
	}
	var slowPasser *Proc
	connected := late("B22", "scm-rights-connected", "take -listen -path {socket}", "connect")
	connected.Started = func(t testing.TB, e *Env, p *Proc) {
		if p.WaitLine("listening", Late) != "" {
			slowPasser = e.Helper(t, "egress", "pass", "-wait", "open", "-to", e.Words["to"], "-path", e.Words["socket"])
		}
	}
	connected.Resume = func(t testing.TB, _ *Env) { slowPasser.Input(t, "\n") }
	received := late("B22", "scm-rights-older", "take -listen -path {socket}", "open")
	received.Started, received.Clean = passer, true
	getfd := late("B22", "pidfd-getfd-older", "pidfd-getfd -pid {pid} -fd {fd}", "open")
	getfd.Prepare, getfd.Clean = holder, true
	pidfd := late("B22", "pidfd-getfd-late", "pidfd-getfd -pid {pid} -fd {fd}", "connect")
	pidfd.Prepare = holder
	all := []Attempt{
		{Name: "scm-rights", Argv: egress("take -listen -path {socket}"), Started: passer},
		{Name: "scm-rights-abstract", Argv: egress("take -listen -path @{say}"), Started: func(t testing.TB, e *Env, p *Proc) {
			if p.WaitLine("listening", Late) != "" {
				e.Helper(t, "egress", "pass", "-to", e.Words["to"], "-path", "@"+e.Text).WaitLine("connected", Late)
			}
		}},
		{Name: "pidfd-getfd", Argv: egress("pidfd-getfd -pid {pid} -fd {fd}"), Prepare: holder},
		connected, received, getfd, pidfd,
	}
	for i := range all {
		all[i].ID, all[i].Indirect = "B22", true // the process outside connects and ends
	}
	return all
}

// unixAttempts speak to a process of the machine that is not guarded (B23).
func unixAttempts() []Attempt {
	var all []Attempt
	for _, u := range []struct{ attempt, name, network string }{
		{"unix", "stream", "unix"}, {"unix-seqpacket", "seqpacket", "unixpacket"}, {"unix-connected", "dgram-connected", "unixgram"},
		{"unix-dgram", "dgram", "unixgram"}, {"unix-pass", "file", "unix"},
	} {
		for _, at := range []struct{ name, to string }{{"path", "{socket}"}, {"abstract", "@{say}"}} {
			prepare := func(t testing.TB, e *Env) {
				where := e.Words["socket"]
				if at.name == "abstract" {
					where = "@" + e.Text
				}
				e.Outside.Here.Listen(t, u.network, where)
			}
			name, words := u.name+"-"+at.name, u.attempt+" -to "+at.to
			all = append(all, Attempt{ID: "B23", Name: name, Network: "none", Argv: egress(words), Prepare: prepare})
			wait := "connect"
			if u.attempt == "unix-dgram" {
				wait = "socket"
			}
			older := late("B23", name+"-older", words, wait)
			older.Network, older.Prepare = "none", prepare
			all = append(all, older)
		}
	}
	return slices.Concat(all, leftAttempts(), parkedAttempts(), splicedAttempts())
}

// splicedAttempts put pages on a socket by calls that Linux 6.1 does not ask its security hook about (B115).
func splicedAttempts() []Attempt {
	var all []Attempt
	for _, by := range []string{"sendfile", "splice", "uring"} {
		older := late("B115", "unix-"+by, "unix -to {socket} -by "+by, "connect")
		older.Prepare = func(t testing.TB, e *Env) { e.Outside.Here.Listen(t, "unix", e.Words["socket"]) }
		group := Attempt{ID: "B115", Name: "group-" + by, Argv: egress("udp-connect -to 239.115.0.1:{port} -by " + by)}
		group.Prepare = func(t testing.TB, e *Env) { // whoever has the port hears a group that somebody has joined
			join := "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 35, socket.inet_aton('239.115.0.1') + socket.inet_aton('" + Own + "')); print('joined', flush=True); sys.stdin.read()"
			if e.Helper(t, "python3", "-c", join).WaitLine("joined", Late) == "" {
				t.Error("nobody joins the group")
			}
			Must(t, "ip route replace 239.115.0.1 dev "+Dev)
			e.Outside.Here.Listen(t, "udp-shared", fmt.Sprintf("0.0.0.0:%d", e.Port))
		}
		older.Network, group.Network = "none", "none"
		all = append(all, older, group)
	}
	return all
}

// leftAttempts send to a socket of the container's own that somebody outside has got (B64).
func leftAttempts() []Attempt {
	hears := func(t testing.TB, e *Env) { e.Outside.Here.Listen(t, "unix", e.Words["socket"]) }
	left := func(name, words string) Attempt {
		a := late("B64", name, words+" -path {socket}.own", "connect")
		a.Network, a.Prepare = "none", hears
		return a
	}
	var all []Attempt
	for _, what := range []string{"stream", "seqpacket", "dgram", "connection", "listener", "queued", "bound", "udp"} {
		words := "unix-leave -to {socket} -then " + what
		if what == "udp" {
			words += " -n 0" // nobody answers
		}
		a := left(what, words)
		// where nobody has accepted yet, that is refused, and what was sent waits for ever; and nobody gets a network socket
		a.Quiet = what == "queued" || what == "udp"
		all = append(all, a)
	}
	for _, what := range []string{"stream", "dgram", "listener"} { // pidfd_getfd
		var fetcher *Proc
		a := left(what+"-fetched", "unix-fetched -then "+what)
		a.Started = func(t testing.TB, e *Env, p *Proc) {
			e.words(t, p, "end", "pid", "fd")
			fetcher = e.Helper(t, "egress", "fetch", "-pid", e.Words["pid"], "-fd", e.Words["fd"], "-to", e.Words["socket"])
			if fetcher.WaitLine("fetched", Late) == "" {
				t.Error("it is not fetched")
			}
			p.Input(t, "\n")
		}
		a.Ended = func(t testing.TB, _ *Env, r Result) {
			if r.Exit == 0 { // it carries what was sent
				fetcher.Wait(t)
			}
		}
		all = append(all, a)
	}
	for _, what := range []string{"stream", "dgram"} {
		// it waits in a queue outside while the taint comes
		var carrier *Proc
		a := left(what+"-taken-late", "unix-leave -n 0 -to {socket}.carrier -then "+what)
		a.Prepare = func(t testing.TB, e *Env) {
			hears(t, e)
			carrier = e.Helper(t, "egress", "carry", "-listen", "-path", e.Words["socket"]+".carrier", "-to", e.Words["socket"])
			if carrier.WaitLine("listening", Late) == "" {
				t.Error("nobody carries")
			}
		}
		a.Ended = func(t testing.TB, _ *Env, _ Result) {
			carrier.Input(t, "\n")
			carrier.Wait(t)
		}
		a.Quiet = true // it is the receipt that is refused
		all = append(all, a)
	}
	return all
}

// parkedAttempts have what they opened in no process while the taint comes (B61).
func parkedAttempts() []Attempt {
	a := late("B61", "parked-unix", "unix-parked -to {socket}", "open")
	a.Network = "none"
	a.Prepare = func(t testing.TB, e *Env) { e.Outside.Here.Listen(t, "unix", e.Words["socket"]) }
	return []Attempt{a, ParkedTCP()}
}

// ParkedTCP is a connection that no process has open while the taint comes.
func ParkedTCP() Attempt { return late("B61", "parked-tcp", "tcp-parked -to {to}", "open") }

// OwnEnds is no attempt: it talks to itself over Unix sockets, which goes on under taint.
func OwnEnds() Attempt {
	a := late("B64", "own", "unix-own -path {socket}.own", "open")
	a.Network = "none"
	return a
}

// loopbackAttempts speak to a service of the machine on loopback (B26), also under names that mean it (B14).
func loopbackAttempts() []Attempt {
	var all []Attempt
	for _, l := range []struct{ id, name, to, at string }{
		{"B26", "loopback4", "127.0.0.1", "127.0.0.1"}, {"B26", "loopback4-other", "127.9.9.9", "0.0.0.0"}, {"B26", "loopback6", "[::1]", "[::1]"},
		{"B14", "any4", "0.0.0.0", "127.0.0.1"}, {"B14", "any6", "[::]", "[::1]"}, {"B14", "loopback-mapped", "[::ffff:127.0.0.1]", "127.0.0.1"},
		{"B26", "own-address4", Own, Own}, {"B26", "own-address6", "[" + Own6 + "]", "[" + Own6 + "]"},
	} {
		for _, proto := range []struct{ network, attempt string }{{"tcp", "tcp"}, {"udp", "udp-sendto"}} {
			prepare := func(t testing.TB, e *Env) {
				e.Outside.Here.Listen(t, proto.network, fmt.Sprintf("%s:%d", l.at, e.Port))
			}
			a := Attempt{ID: l.id, Name: l.name + "-" + proto.network, Network: "none", Argv: egress(proto.attempt + " -to " + l.to + ":{port}"), Prepare: prepare}
			all = append(all, a)
			if proto.network == "tcp" {
				older := late(l.id, l.name+"-older", "tcp -to "+l.to+":{port}", "connect")
				older.Network, older.Prepare = "none", prepare
				all = append(all, older)
			}
		}
	}
	// a group of one port, some of it outside: who hears a packet is chosen when it arrives (B63)
	for _, to := range []struct{ name, address string }{{"4", "127.0.0.1"}, {"6", "[::1]"}} {
		for _, proto := range []string{"udp", "tcp"} {
			join := func(t testing.TB, e *Env) {
				e.Outside.Here.Listen(t, proto+"-group", to.address+":"+e.Words["port"])
			}
			ready := func(t testing.TB, _ *Env) {
				Must(t, "sysctl -qw net.ipv4.tcp_fastopen=519") // what comes with a first packet is taken
				t.Cleanup(func() { Must(t, "sysctl -qw net.ipv4.tcp_fastopen=5") })
			}
			words := proto + "-group -to " + to.address + ":{port} -n "
			later := late("B63", proto+to.name+"-group-later", words+"1", "open")
			later.Network, later.Prepare, later.Resume = "none", ready, join
			all = append(all, later, Attempt{ID: "B63", Name: proto + to.name + "-group", Network: "none", Argv: egress(words + "0"),
				Prepare: func(t testing.TB, e *Env) { ready(t, e); join(t, e) }})
		}
	}
	return append(all, Attempt{
		ID: "B26", Name: "broadcast-udp", Network: "none", Argv: egress("udp-shared -to 127.255.255.255:{port}"),
		Prepare: func(t testing.TB, e *Env) {
			e.Outside.Here.Listen(t, "udp-shared", fmt.Sprintf("0.0.0.0:%d", e.Port))
		},
	})
}

// awayAttempts send to an allowed destination by another device than the way there, where somebody else has its address (B89).
func awayAttempts() []Attempt {
	ready := func(t testing.TB, _ *Env) {
		t.Cleanup(func() {
			Must(t, "ip link del away0; ip -n "+netns+" addr del "+Away4+"/32 dev "+devFar+"; ip -n "+netns+" addr del "+Away6+"/128 dev "+devFar+"; ip -6 route del fd79::/64 dev "+Dev)
		})
		Must(t, "ip link add away0 type dummy && ip link set away0 multicast on && ip addr add 10.79.0.1/24 dev away0 && ip addr add fd79::1/64 dev away0 nodad && ip link set away0 up")
		Must(t, "ip -n "+netns+" addr add "+Away4+"/32 dev "+devFar+" && ip -n "+netns+" addr add "+Away6+"/128 dev "+devFar+" nodad && ip -6 route add fd79::/64 via "+World6+" dev "+Dev+" metric 2000")
		Must(t, "ip route add "+Group4+" dev away0; for g in "+Group6+" "+GroupLink+"; do ip -6 route add $g dev away0 table local; done")
	}
	var all []Attempt
	add := func(id, name, words string) { all = append(all, tiedAttempts(id, name, words, ready)...) }
	for _, to := range []struct {
		name, address string
		by            []string
	}{
		{"4", Away4, []string{"device", "index", "unicast", "pktinfo", "later"}},
		{"mapped", "[::ffff:" + Away4 + "]", []string{"device"}},
		{"6", "[" + Away6 + "]", []string{"device", "unicast", "pktinfo", "later", "sticky"}},
	} {
		for _, by := range to.by {
			add("B89", "udp-"+to.name+"-"+by, "udp-tied -dev {dev} -by "+by+" -to "+to.address)
		}
		add("B89", "udp-"+to.name+"-connected", "udp-away -dev {dev} -by device -to "+to.address)
		add("B89", "tcp-"+to.name, "tcp-away -dev {dev} -by device -to "+to.address)
	}
	for _, to := range []struct{ name, address, by string }{ // groups; the scope of one is in its address
		{"4", Group4, "group"}, {"mapped", "[::ffff:" + Group4 + "]", "group"}, {"6", "[" + Group6 + "]", "group"}, {"6-link", "[" + GroupLink + "%" + Dev + "]", "address"},
	} {
		add("B89", "group-"+to.name, "udp-tied -dev {dev} -by "+to.by+" -to "+to.address)
	}
	for _, by := range []string{"pktinfo", "later"} { // with no room to note it on the socket
		add("B89", "udp-4-full-"+by, "udp-tied -dev {dev} -full -by "+by+" -to "+Away4)
	}
	// of IPv4 the source chooses the device for groups and 255.255.255.255 (B140)
	for _, to := range []struct {
		name, address, from string
		by                  []string
	}{
		{"4", Group4, Own, []string{"bound", "named", "named-later"}}, {"4", Group4, Open4, []string{"kept"}},
		{"mapped", "[::ffff:" + Group4 + "]", "::ffff:" + Own, []string{"bound"}}, {"limited", "255.255.255.255", Own, []string{"bound", "named"}},
	} {
		for _, by := range to.by {
			add("B140", "group-"+to.name+"-"+by, "udp-tied -dev {dev} -by "+by+" -from "+to.from+" -to "+to.address)
		}
	}
	return slices.Concat(all, rememberedAttempts(), gatewayAttempts(), turnAttempts(), hiddenAttempts())
}

// turnAttempts send while their socket is connected anew: others of the machine hear a broadcast before its packet is checked (B141).
func turnAttempts() []Attempt {
	listen := func(t testing.TB, e *Env) { e.Outside.Here.Listen(t, "udp", fmt.Sprintf("0.0.0.0:%d", e.Port)) }
	attempt := func(name, how, to string) Attempt {
		return Attempt{ID: "B141", Name: name, Argv: egress(how + " -after 5s -to " + to + ":{port}"), Prepare: listen}
	}
	const broadcast = "10.77.0.255"
	older := late("B141", "turns-4-older", "udp-turns -by reset -after 5s -to "+broadcast+":{port}", "open")
	older.Prepare = listen
	return []Attempt{
		attempt("turns-4", "udp-turns", broadcast), attempt("turns-reset-4", "udp-turns -by reset", broadcast), older,
		attempt("first-4", "udp-first", broadcast), attempt("first-mapped", "udp-first", "[::ffff:"+broadcast+"]"),
		{ID: "B141", Name: "portless-4", Network: "none", Creates: true, Argv: egress("udp-portless -after 5s -to " + broadcast + ":{port}")},
	}
}

//go:embed nft.py
var nft string

// hiddenAttempts bear a foreign source until the host's own rules write another in its place, or answer it (B142).
func hiddenAttempts() []Attempt {
	const foreign, foreign4 = "fd77:5::5", "10.77.5.5"
	rule := func(words string) func(testing.TB, *Env) {
		return func(t testing.TB, e *Env) {
			t.Cleanup(func() {
				Must(t, "python3 -c '"+nft+"' delete; ip -6 route del fd77:5::/64; ip route del 10.77.5.0/24")
			})
			Must(t, "modprobe -a nft_chain_nat nft_masq nft_reject_ipv4 nft_reject_ipv6; ip -6 route add fd77:5::/64 via "+World6+" dev "+Dev+" && ip route add 10.77.5.0/24 via "+World4+" dev "+Dev)
			Must(t, fmt.Sprintf("python3 -c '%s' %s %d", nft, words, e.Port))
		}
	}
	var all []Attempt
	add := func(name, rules, words string) {
		words += ":{port}"
		older := late("B142", name+"-older", words, "open")
		older.Prepare, older.Quiet = rule(rules), strings.HasPrefix(words, "tcp")
		all = append(all, Attempt{ID: "B142", Name: name, Argv: egress(words), Prepare: rule(rules), Quiet: older.Quiet}, older)
	}
	for _, by := range []string{"bind", "pktinfo"} {
		add("loopback-"+by, "masquerade6", "udp-source -from "+foreign+" -by "+by+" -to [::1]")
		add("reject-"+by, "reject6", "udp-source -from "+foreign+" -by "+by+" -to [::1]")
		add("open6-"+by, "masquerade6", "udp-source -from "+foreign+" -by "+by+" -to ["+Open6+"]")
		add("open4-"+by, "masquerade4", "udp-source -from "+foreign4+" -by "+by+" -to "+Open4)
	}
	add("reject4", "reject4", "udp-source -from "+foreign4+" -by bind -to "+Open4)
	add("open6-tcp", "masquerade6", "tcp-source -from "+foreign+" -by bind -to ["+Open6+"]")
	add("open4-tcp", "masquerade4", "tcp-source -from "+foreign4+" -by bind -to "+Open4)
	return all
}

// gatewayAttempts pass by the gateway on the way to an allowed destination: who is on the link has its address as well (B111).
func gatewayAttempts() []Attempt {
	ready := func(t testing.TB, _ *Env) {
		t.Cleanup(func() {
			Must(t, "ip link del away0; ip route del 10.79.0.0/16 dev "+Dev+"; ip -n "+netns+" addr del "+Away4+"/32 dev "+devFar)
		})
		Must(t, "ip link add away0 type dummy && ip addr add 10.78.0.1/24 dev away0 && ip link set away0 up && ip route add 10.79.0.0/24 via 10.78.0.9")
		Must(t, "ip route add 10.79.0.0/16 dev "+Dev+" && ip -n "+netns+" addr add "+Away4+"/32 dev "+devFar)
	}
	var all []Attempt
	for _, words := range []string{"udp-tied -by route", "udp-tied -by message", "udp-away -by route", "tcp-away -by route"} {
		all = append(all, tiedAttempts("B111", strings.ReplaceAll(words, " -by ", "-"), words+" -dev {dev} -to "+Away4, ready)...)
	}
	return all
}

// tiedAttempts send by a way of their own choice, from the start, and with a socket that is older than the taint.
func tiedAttempts(id, name, words string, ready func(testing.TB, *Env)) []Attempt {
	words += ":{port}"
	older := late(id, name+"-older", words, "tie")
	older.Prepare = ready
	return []Attempt{{ID: id, Name: name, Argv: egress(words), Prepare: ready}, older}
}

// rememberedAttempts send, after a socket that chooses nothing, with one that chose its way before: by the same device, to another
// gateway (B89).
func rememberedAttempts() []Attempt {
	ready := func(t testing.TB, _ *Env) {
		t.Cleanup(func() {
			Must(t, "ip rule del fwmark 7; ip rule del oif away0; for d in away0 away1 away3; do ip link del $d; done")
		})
		// what goes to the first gateway ends in a port of the bridge where nobody is
		Must(t, "ip link add away0 type bridge && ip link add away1 type veth peer name away2 netns "+netns+" && ip link add away3 type dummy")
		Must(t, "for d in away1 away3; do ip link set $d master away0 up; done; ip addr add 10.78.0.1/24 dev away0 && ip link set away0 up")
		Must(t, "ip neigh add 10.78.0.9 lladdr 02:00:00:00:00:09 dev away0 && bridge fdb add 02:00:00:00:00:09 dev away3 master static && ip route add 10.79.0.0/24 via 10.78.0.9")
		Must(t, "ip -n "+netns+" addr add 10.78.0.2/24 dev away2 && ip -n "+netns+" addr add "+Away4+"/32 dev away2 && ip -n "+netns+" link set away2 up")
		Must(t, "for r in 'fwmark 7' 'oif away0'; do ip rule add $r lookup 79; done; ip route add 10.79.0.0/24 via 10.78.0.2 dev away0 table 79")
	}
	var all []Attempt
	for _, by := range []string{"mark -n 7", "device -dev away0"} {
		name, _, _ := strings.Cut(by, " ")
		a := late("B89", "udp-4-remembered-"+name, "udp-tied -dev {dev} -then plain -to "+Away4+":{port} -by "+by, "tie")
		a.Prepare = ready
		all = append(all, a)
	}
	return all
}

// strayAttempts send to loopback what leaves the machine all the same: by a device (B54), or in the kernel's
// answer to a source that is not there (B55).
func strayAttempts() []Attempt {
	// the world takes loopback for its own, and is the way to all else
	ready := func(t testing.TB, _ *Env) {
		t.Cleanup(func() { Must(t, "ip -6 route del ::/96 dev "+Dev) })
		Must(t, "ip netns exec "+netns+" sysctl -qw net.ipv4.conf."+devFar+".route_localnet=1; ip -6 route replace ::/96 via "+World6+" dev "+Dev)
	}
	var all []Attempt
	for _, to := range []struct {
		name, address string
		by            []string
	}{
		{"4", "127.0.0.1", []string{"device", "index", "unicast", "pktinfo"}}, {"4-other", "127.9.9.9", []string{"device"}},
		{"mapped", "[::ffff:127.0.0.1]", []string{"device"}}, {"6", "[::1]", []string{"device", "unicast", "pktinfo"}},
	} {
		for _, by := range to.by {
			all = append(all, Attempt{ID: "B54", Name: "udp-" + to.name + "-" + by, Argv: egress("udp-tied -dev {dev} -by " + by + " -to " + to.address + ":{port}"), Prepare: ready})
		}
		all = append(all, Attempt{ID: "B54", Name: "tcp-" + to.name, Argv: egress("tcp-tied -dev {dev} -by device -to " + to.address + ":{port}"), Prepare: ready, Started: untilArrived})
	}
	for _, by := range []string{"bind", "pktinfo"} {
		all = append(all, Attempt{ID: "B55", Name: "error-" + by, Argv: egress("udp-source -from " + World6 + " -by " + by + " -to [::1]:{port}")})
	}
	// what may go out has a source of this machine's too, or its receiver answers somebody else
	for _, f := range []struct{ name, from, to string }{{"4", "10.77.0.77", Open4}, {"6", "fd77::77", "[" + Open6 + "]"}} {
		for _, how := range []string{"udp-source -by bind", "udp-source -by pktinfo", "tcp-source -by bind"} {
			words := how + " -from " + f.from + " -to " + f.to + ":{port}"
			name := "open" + f.name + "-" + how[:3] + how[len("udp-source -by"):]
			name = strings.ReplaceAll(name, " ", "-")
			older := late("B55", name+"-older", words, "open")
			older.Quiet = strings.HasPrefix(how, "tcp") // what comes with a first packet is sent again later
			all = append(all, Attempt{ID: "B55", Name: name, Argv: egress(words), Quiet: older.Quiet}, older)
		}
	}
	return all
}
