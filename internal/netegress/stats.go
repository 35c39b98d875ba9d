package netegress

import "weir/internal/bpfobj"

// MapStats tells how full the maps and rings of egress are.
func (e *Egress) MapStats() ([]bpfobj.MapStat, error) {
	return bpfobj.MapStats(
		e.egress.HoldReqs, e.egress.Claims, e.egress.Destinations, e.egress.GrantDests, e.egress.Grants, e.egress.Held, e.egress.Refusals,
		e.egress.OutsideUnix, e.egress.EgressEvents, e.egress.Socks, e.packet.Trusted, e.peers.UnixPeers)
}
