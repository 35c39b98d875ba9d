package netegress

import "weir/internal/taint"

// Uses tells how full the maps and rings of egress are.
func (e *Egress) Uses() ([]taint.Use, error) {
	return taint.Uses(
		e.egress.Asks, e.egress.Claims, e.egress.Destinations, e.egress.GrantDests, e.egress.Grants, e.egress.Holds, e.egress.OutsideUnix,
		e.egress.Records, e.egress.Socks, e.packet.Trusted, e.peers.UnixPeers)
}
