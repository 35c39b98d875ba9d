package dns

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

const (
	headerSize = 12
	plainUDP   = 512 // bytes of an answer without EDNS
)

// Answer answers one message, by UDP in at most that many bytes which the asker
// takes; nil: nothing is to be said. It never fails: what cannot be read is
// refused.
func (r *Resolver) Answer(ctx context.Context, query []byte, udp bool) []byte {
	r.opts.Counts.asked.Add(1)
	if len(query) < headerSize || query[2]&0x80 != 0 {
		r.opts.Counts.malformed.Add(1)
		return nil // an answer, or too short to be answered
	}
	q, m := new(dns.Msg), new(dns.Msg)
	if err := q.Unpack(query); err != nil {
		r.opts.Counts.malformed.Add(1)
		m.Id, m.Response, m.Rcode = uint16(query[0])<<8|uint16(query[1]), true, dns.RcodeFormatError
		return pack(m)
	}
	m.Id, m.Response, m.Opcode, m.RecursionDesired = q.Id, true, q.Opcode, q.RecursionDesired
	size := dns.MaxMsgSize
	if udp {
		size = plainUDP
	}
	if opt := q.IsEdns0(); opt != nil {
		m.SetEdns0(udpAnswer, false)
		if udp {
			size = min(max(int(opt.UDPSize()), plainUDP), udpAnswer)
		}
	}
	switch {
	case q.Opcode != dns.OpcodeQuery:
		m.Rcode = dns.RcodeNotImplemented
	case len(q.Question) != 1 || q.Truncated:
		r.opts.Counts.malformed.Add(1)
		m.Rcode = dns.RcodeFormatError
	default:
		m.Question, m.RecursionAvailable = q.Question, true
		r.answer(ctx, m)
	}
	m.Truncate(size)
	return pack(m)
}

func pack(m *dns.Msg) []byte {
	m.Compress = true
	b, err := m.Pack()
	if err != nil {
		return nil // a name that can be read but not written
	}
	return b
}

// answer fills in the answer to m's one question.
func (r *Resolver) answer(ctx context.Context, m *dns.Msg) {
	q := m.Question[0]
	if q.Qclass != dns.ClassINET {
		m.Rcode = dns.RcodeRefused
		return
	}
	switch q.Qtype {
	case dns.TypeAXFR, dns.TypeIXFR, dns.TypeANY:
		m.Rcode = dns.RcodeRefused
		return
	}
	name, addresses := canonical(q.Name), q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA
	switch r.kindOf(name) {
	case unknown:
		m.Rcode = dns.RcodeNameError
	case here:
		switch q.Qtype {
		case dns.TypeA:
			r.put(m, q.Name, Found{Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, TTL: minTTL})
		case dns.TypeAAAA:
			r.put(m, q.Name, Found{Addrs: []netip.Addr{netip.IPv6Loopback()}, TTL: minTTL})
		}
	case look:
		if addresses {
			r.look(ctx, m, name)
		}
	case stand:
		// nothing else is said of it, HTTPS and SVCB neither: they would have other names in them
		if addresses && (q.Qtype == dns.TypeAAAA) == r.opts.Six {
			r.stand(m, name)
		}
	}
}

func (r *Resolver) look(ctx context.Context, m *dns.Msg, name string) {
	q := m.Question[0]
	f, err := r.find(ctx, name, q.Qtype == dns.TypeAAAA)
	switch {
	case errors.Is(err, ErrNoName):
		m.Rcode = dns.RcodeNameError
	case err != nil:
		r.opts.Counts.failed.Add(1)
		m.Rcode = dns.RcodeServerFailure
	default:
		r.put(m, q.Name, f)
	}
}

func (r *Resolver) stand(m *dns.Msg, name string) {
	q := m.Question[0]
	addr, err := r.opts.Pool.Address(name, r.opts.Six)
	if err != nil {
		r.opts.Counts.failed.Add(1)
		m.Rcode = dns.RcodeServerFailure
		return
	}
	r.opts.Counts.stood.Add(1)
	r.put(m, q.Name, Found{Addrs: []netip.Addr{addr}, TTL: standTTL * time.Second})
}

// put writes a chain of aliases and the addresses at its end.
func (r *Resolver) put(m *dns.Msg, name string, f Found) {
	ttl := uint32(max(f.TTL/time.Second, 1))
	for _, next := range f.Chain {
		next = dns.Fqdn(next)
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: ttl}, Target: next})
		name = next
	}
	for _, a := range f.Addrs {
		if a.Is4() {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}, A: a.AsSlice()})
		} else {
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: ttl}, AAAA: a.AsSlice()})
		}
	}
}
