//go:build linux

package main

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

const (
	nameServer = denied // of the world; one that is allowed would be asked directly
	queryRound = 12     // windows of each kind
	queryCount = 200    // questions in a window; all that are not allowed have room in the resolver's pool
	inFlight   = 32     // questions that are asked before the first answer is read, where the rate is measured
)

// Names as the policy of this plan has them: those below allowedName are looked up, the other stands for itself.
const (
	allowedName = "n00000.allowed.example."
	unknownName = "n00000.unknown.example."
	nameRule    = "  - name: \"*.allowed.example\"\n"
	nameServers = "resolvers: [" + nameServer + "]\n"
)

// naming measures the resolver: the questions of a tainted session, which the kernel leads to it, against those of a clean one, which
// go to the name server.
func naming(b *bed) error {
	if err := b.serve("dns"); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/resolv.conf", []byte("nameserver "+nameServer+"\n"), 0o644); err != nil {
		return fmt.Errorf("name the server: %w", err)
	}
	b.allow = nameRule
	if _, err := b.start(nameServers); err != nil {
		return err
	}
	clean, err := b.guarded("clean")
	if err != nil {
		return err
	}
	defer clean.end()
	tainted, err := b.guarded("tainted", "--taint", "secret")
	if err != nil {
		return err
	}
	defer tainted.end()
	time.Sleep(time.Second)
	for range queryRound {
		took := map[string]float64{}
		for _, one := range []struct {
			name, what string
			in         *worker
		}{
			{"direct", "ask-allowed", clean}, {"looked up", "ask-allowed", tainted}, {"remembered", "ask-again", tainted},
			{"stood", "ask-unknown", tainted}, {"rate", "rate-again", tainted}, {"rate stood", "rate-unknown", tainted},
			{"rate direct", "rate-again", clean},
		} {
			ns, err := one.in.do(one.what, queryCount)
			if err != nil {
				return fmt.Errorf("measure names, %s: %w", one.name, err)
			}
			took[one.name] = float64(ns) / queryCount
		}
		b.add("resolver_direct_ms", took["direct"]/1e6)
		b.add("resolver_added_ms", (took["looked up"]-took["direct"])/1e6)
		b.add("resolver_remembered_ms", took["remembered"]/1e6)
		b.add("resolver_unknown_ms", took["stood"]/1e6)
		b.add("resolver_queries_per_s", 1e9/took["rate"])
		b.add("resolver_unknown_queries_per_s", 1e9/took["rate stood"])
		b.add("resolver_direct_queries_per_s", 1e9/took["rate direct"])
	}
	return nil
}

// ask asks a name server on a new connected socket for each question, as libraries do, and waits for the answer. With fresh, no two
// questions of a program are for the same name.
func ask(name string, fresh bool) operation {
	to, query, buffer := address(nameServer, 53), queryFor(name), make([]byte, 1024)
	asked := must(unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)) // outlives the fork
	last := (*int)(unsafe.Pointer(&asked[0]))
	return func(n int) unix.Errno {
		for range n {
			if fresh {
				*last++
				number(query, *last)
			}
			fd, errno := socket(unix.SOCK_DGRAM)
			if errno == 0 {
				_, _, errno = unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to))
			}
			if errno == 0 {
				errno = exchange(fd, query, buffer, 1)
			}
			hangUp(fd)
			if errno != 0 {
				return errno
			}
		}
		return 0
	}
}

// rate asks many questions at once on one socket.
func rate(name string) operation {
	to, query, buffer := address(nameServer, 53), queryFor(name), make([]byte, 1024)
	return func(n int) unix.Errno {
		fd, errno := socket(unix.SOCK_DGRAM)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to))
		}
		for left := n; left > 0 && errno == 0; left -= inFlight {
			errno = exchange(fd, query, buffer, min(left, inFlight))
		}
		hangUp(fd)
		return errno
	}
}

// exchange sends a question several times and reads as many answers. No answer is an error: the socket waits two seconds.
func exchange(fd uintptr, query, buffer []byte, times int) unix.Errno {
	limit := unix.Timeval{Sec: 2}
	if _, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, uintptr(unsafe.Pointer(&limit)), unsafe.Sizeof(limit), 0); errno != 0 {
		return errno
	}
	for range times {
		if _, _, errno := unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&query[0])), uintptr(len(query))); errno != 0 {
			return errno
		}
	}
	for range times {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
		if errno != 0 {
			return errno
		}
		if n < 12 || buffer[3]&0xf != 0 || buffer[7] == 0 {
			return unix.EBADMSG // refused, unknown, or without an address
		}
	}
	return 0
}

func queryFor(name string) []byte {
	q := new(dns.Msg)
	q.SetQuestion(name, dns.TypeA)
	return must(q.Pack())
}

// number writes a number into the first label of a question: one letter and five digits.
func number(query []byte, n int) {
	for i := 18; i > 13; i-- {
		query[i] = '0' + byte(n%10)
		n /= 10
	}
}

// serveNames answers every question with one address that is public, and no more than that. It does system calls only.
func serveNames(fd uintptr, buffer []byte) {
	var from unix.RawSockaddrInet4
	for {
		size := uint32(unsafe.Sizeof(from))
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)-16), 0,
			uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)))
		if errno != 0 {
			return
		}
		n = answer(buffer, n)
		unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&buffer[0])), n, 0, uintptr(unsafe.Pointer(&from)), uintptr(size))
	}
}

// answer makes a reply of a query, in place, and gives its length.
func answer(m []byte, n uintptr) uintptr {
	at := uintptr(12)
	for at < n && m[at] != 0 {
		at += uintptr(m[at]) + 1
	}
	end := at + 5 // the last label, type and class
	if end > n {
		return n
	}
	m[2], m[3] = 0x81, 0x80
	m[6], m[7], m[8], m[9], m[10], m[11] = 0, 0, 0, 0, 0, 0 // and no options
	if m[end-3] != 1 {
		return end // no address of another kind
	}
	m[7] = 1
	record := [16]byte{0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 93, 184} // and the number of the name
	if end > 19 {
		record[14], record[15] = 100*(m[14]-'0')+10*(m[15]-'0')+m[16]-'0', 10*(m[17]-'0')+m[18]-'0'
	}
	return end + uintptr(copy(m[end:], record[:]))
}
