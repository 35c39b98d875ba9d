//go:build vmguest

package clients

import (
	"fmt"
	"strconv"
	"testing"
)

// client is a program as people use it.
type client struct {
	name    string // its row
	argv    func(place) []string
	want    string // in its output when all went well
	limited bool   // it gives up by itself: see ownLimit
	once    bool   // shown that an approval serves one retry only
	core    bool   // one of those that VMTEST_CLIENTS=core runs
	heavy   bool   // few of its kind fit into a VM at a time
	place   func(*testing.T, *fixture) place
}

// clients is the table. A name is looked up where the place has no address of its own.
var clients = []client{
	core(once(curl("curl --http1.1", "--http1.1"))),
	curl("curl --http2", "--http2"),
	at443(curl("curl --http3", "--http3")),
	core(limited(curl("curl --connect-timeout 10", "--connect-timeout", "10"))),
	core(client{name: "curl, by name", place: https, want: answer, argv: func(p place) []string {
		return []string{"curl", "-sS", "-m", "600", p.named()}
	}}),
	{name: "wget", place: https, want: answer, argv: func(p place) []string {
		return []string{"wget", "-q", "-O", "-", "--tries=1", "--timeout=600", p.url("")}
	}},
	core(script("Python requests", https, "python3", "testdata/get.py")),
	{name: "Python asyncio", place: plain, want: answer, argv: func(p place) []string {
		return append([]string{"python3", "testdata/aio.py"}, p.words()...)
	}},
	{name: "Go HTTP", place: https, want: answer, argv: func(p place) []string { return []string{"gonet", "get", p.url("")} }},
	limited(client{name: "Go HTTP, Dialer.Timeout 10s", want: answer, argv: func(p place) []string {
		return []string{"gonet", "get", p.url(""), "10s"}
	}}),
	heavy(script("Node.js fetch", https, "node", "testdata/fetch.mjs")),
	{name: "Ruby Socket.tcp, connect_timeout", place: plain, want: answer, argv: func(p place) []string {
		return append([]string{"ruby", "--disable-gems", "testdata/twice.rb"}, p.words()...)
	}},
	core(client{name: "OpenSSH", place: ssh, want: answer, argv: func(p place) []string {
		return []string{"ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
			"-p", strconv.Itoa(p.port), "root@" + p.addr, "echo " + answer + " && touch " + sshSeen(p)}
	}}),
	shell("git clone, https", https, "answer", "d=$(mktemp -d) && git clone -q $URL/git/probe.git $d/x && cat $d/x/file && echo answer"),
	heavy(shell("apt update and download", plain, "answer", `
		mkdir -p /tmp/$TEXT/lists/partial /tmp/$TEXT/cache/archives/partial && cd /tmp/$TEXT && chmod -R 777 . &&
		echo "deb [trusted=yes] http://$AT/$TEXT/apt ./" >sources &&
		set -- -q -o Dir::Etc::SourceList=$PWD/sources -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD/cache &&
		apt-get "$@" -o APT::Update::Error-Mode=any update && apt-get "$@" download weir-probe && test -s weir-probe_1_all.deb && echo answer`)),
	heavy(shell("npm install", https, "answer", `npm install --prefix /tmp/$TEXT --cache /tmp/$TEXT/cache --no-audit --no-fund \
		--no-update-notifier --registry $URL/npm/ weir-probe && test -s /tmp/$TEXT/node_modules/weir-probe/package.json && echo answer`)),
	once(named("glibc, by name", "/run/client")),
	core(named("musl, by name", "/run/client.musl")),
	{name: "Go HTTP, by name", place: https, want: answer, argv: func(p place) []string { return []string{"gonet", "get", p.named()} }},
	{name: "Python requests, by name", place: https, want: answer, argv: func(p place) []string { return []string{"python3", "testdata/get.py", p.named()} }},
	heavy(client{name: "Node.js fetch, by name", place: https, want: answer, argv: func(p place) []string { return []string{"node", "testdata/fetch.mjs", p.named()} }}),
	{name: "git clone, by name", place: https, want: answer, argv: func(p place) []string {
		return []string{"bash", "-c", "d=$(mktemp -d) && git clone -q " + p.named() + "/git/probe.git $d/x && cat $d/x/file && echo answer"}
	}},
	core(program("eight threads, one destination", "threads", "sent")),
	program("SIGALRM every 50 ms", "alarm", "signals came"),
	program("SIGCHLD handler", "child", "signals came"),
	program("SIGCONT handler", "cont", "signals came"),
	limited(program("connect without blocking, poll for 10 s", "limit", "sent")),
	shell("socat", plain, answer, `printf 'GET /'$TEXT' HTTP/1.0\r\n\r\n' | socat -t 600 - TCP:$AT`),
	shell("a pipeline", https, answer, "echo x | curl -sS -m 600 --data-binary @- $URL | cat"),
	core(shell("xargs -P 3", https, answer, `printf '%s\n' $URL/1 $URL/2 $URL/3 | xargs -P 3 -n 1 curl -sS -m 60`)),
	wrapped("timeout", "timeout", "600"),
	core(once(wrapped("sudo", "sudo", "-n"))),
	shell("su -c", https, answer, `su agent -c "curl -sS -m 600 $URL"`),
	wrapped("tmux", "testdata/tmux.sh"),
	shell("on a terminal", https, answer, `script -qec "curl -sS -m 600 $URL" /dev/null`),
	shell("an interactive bash", https, answer, `{ echo "curl -sS -m 600 $URL"; echo 'exit $?'; } | script -qec "bash --norc -i" /dev/null`),
	shell("set -m, in the background", https, answer, "set -m; curl -sS -m 600 $URL & wait $!"),
	shell("an orphan in a session of its own", https, answer, `(setsid curl -sS -m 600 $URL 2>&1 &) | grep answer`),
}

// https, plain and ssh make places where that is spoken.
func https(t *testing.T, f *fixture) place { return served(t, f, true) }
func plain(t *testing.T, f *fixture) place { return served(t, f, false) }

func served(t *testing.T, f *fixture, secure bool) place {
	p := f.place()
	f.servers.listen(t, p.port, secure)
	return p
}

func ssh(t *testing.T, f *fixture) place {
	p := f.place()
	f.mu.Lock()
	defer f.mu.Unlock()
	p.port, f.sshd = f.sshd[0], f.sshd[1:]
	return p
}

// sshSeen is the file by which the server's side of a connection tells that it was there.
func sshSeen(p place) string { return "/run/sshd/" + p.text }

func (p place) words() []string { return []string{p.addr, strconv.Itoa(p.port), p.text} }

func curl(name string, flags ...string) client {
	return client{name: name, place: https, want: answer, argv: func(p place) []string {
		return append(append([]string{"curl", "-sS", "-m", "600"}, flags...), p.url(""))
	}}
}

// at443 goes to the port that QUIC is refused at, which all share.
func at443(c client) client {
	c.place = func(t *testing.T, f *fixture) place {
		p := f.place()
		p.port, p.busy = 443, true
		return p
	}
	return c
}

// limited goes where an answer takes longer than what is left after a hold.
func limited(c client) client {
	make := c.place
	if make == nil {
		make = https
	}
	c.place = func(t *testing.T, f *fixture) place {
		p := make(t, f)
		p.addr = slowWorld
		return p
	}
	c.limited = true
	return c
}

func once(c client) client {
	c.once = true
	return c
}

func heavy(c client) client {
	c.heavy = true
	return c
}

func core(c client) client {
	c.core = true
	return c
}

func script(name string, make func(*testing.T, *fixture) place, argv ...string) client {
	return client{name: name, place: make, want: answer, argv: func(p place) []string { return append(argv[:len(argv):len(argv)], p.url("")) }}
}

func shell(name string, make func(*testing.T, *fixture) place, want, text string) client {
	return client{name: name, place: make, want: want, argv: func(p place) []string {
		return []string{"bash", "-o", "pipefail", "-c", fmt.Sprintf("TEXT=%s AT=%s URL=%s; %s", p.text, p.at(), p.url(""), text)}
	}}
}

func named(name, program string) client {
	return client{name: name, place: plain, want: "sent", argv: func(p place) []string {
		return []string{program, "name", p.name(), strconv.Itoa(p.port), p.text}
	}}
}

func program(name, how, want string) client {
	return client{name: name, place: plain, want: want, argv: func(p place) []string {
		return append([]string{"/run/client", how}, p.words()...)
	}}
}

func wrapped(name string, by ...string) client {
	return client{name: name, place: https, want: answer, argv: func(p place) []string {
		argv := by[:len(by):len(by)]
		if name == "tmux" {
			argv = append(argv, p.text)
		}
		return append(argv, "curl", "-sS", "-m", "600", p.url(""))
	}}
}
