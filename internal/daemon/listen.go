package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weir/internal/control"
	"weir/internal/linux"
	"weir/internal/metrics"
	"weir/internal/netegress"
	"weir/internal/policy"
)

// MetricsSocket is the name of the socket in the run directory that figures are read from.
const MetricsSocket = "metrics.sock"

// openMetrics listens, so that a port that is taken ends the start.
func (d *daemon) openMetrics() error {
	m := d.policies.Base().Metrics
	if m.Listen == policy.MetricsOff {
		return nil
	}
	o := metrics.Options{Listen: filepath.Join(d.opts.RunDir, MetricsSocket), Source: collector{d}, Peers: d.peerRules()}
	if err := d.addMetrics(o); err != nil || m.Listen == policy.MetricsUnix {
		return err
	}
	o.Listen = m.Listen
	if m.TokenFile != "" {
		o.Token = func() (string, error) { return linux.ReadKey(m.TokenFile, "", nil) }
	}
	if m.CertFile != "" {
		o.Cert = func() (tls.Certificate, error) { return tls.LoadX509KeyPair(m.CertFile, m.KeyFile) }
	}
	return d.addMetrics(o)
}

func (d *daemon) addMetrics(o metrics.Options) error {
	s, err := metrics.Listen(o)
	if err == nil {
		d.metrics = append(d.metrics, s)
	}
	return err
}

// serveMetrics answers from the start on: what is not in force yet is not ready. When it breaks, what denies goes on.
func (d *daemon) serveMetrics(ctx context.Context, group *errgroup.Group) {
	for _, s := range d.metrics {
		group.Go(func() error {
			if err := s.Serve(ctx); err != nil {
				d.fail("show metrics", nil, err)
			}
			return nil
		})
	}
}

// rolesOf finds the groups of the policy on this host.
func rolesOf(c policy.Control) (control.Roles, error) {
	var r control.Roles
	for _, role := range []struct {
		key   string
		names []string
		into  *[]uint32
	}{{"look", c.Look, &r.Look}, {"answer", c.Answer, &r.Answer}, {"taint", c.Taint, &r.Taint}} {
		for _, name := range role.names {
			gid, err := linux.GroupNamed(name)
			if err != nil {
				return control.Roles{}, fmt.Errorf("control.%s: there is no group %q on this host: make it, or leave it out", role.key, name)
			}
			*role.into = append(*role.into, gid)
		}
	}
	return r, nil
}

// peerRules refuse guarded processes wherever people and programs of the host are listened to.
func (d *daemon) peerRules() control.PeerRules {
	return control.PeerRules{Process: d.refusePeer, Socket: d.refuseSocket}
}

// refusePeer keeps guarded processes away from the control socket, which the
// kernel does already (B27).
func (d *daemon) refusePeer(pid int) error {
	path, err := linux.CgroupOf(pid)
	if err != nil {
		return fmt.Errorf("find the peer's cgroup: %w", err)
	}
	return d.refuseCgroup(path, fmt.Sprint("process ", pid))
}

func (d *daemon) refuseCgroup(path, who string) error {
	if _, alone := d.processes.Innermost(path); alone || linux.CgroupWithin(path, d.parents.List()) {
		return fmt.Errorf("%s is guarded: only people on the host give orders", who)
	}
	return nil
}

// Peer implements control.Reader.
func (d *daemon) Peer(_ context.Context, p control.Peer) error {
	refuse := func() error { return d.refuseSocket(p.Local, p.Remote) }
	if p.PID > 0 {
		refuse = func() error { return d.refusePeer(p.PID) }
	}
	if err := refuse(); err != nil {
		return control.Errorf(control.Denied, "refused: %w", err)
	}
	return nil
}

// refuseSocket keeps guarded processes away from the callback's port, also while they
// are clean (G17). Who is not on this host, or in another network namespace, is none
// whose socket can be found: a container that reaches an exposed address is one.
func (d *daemon) refuseSocket(local, remote netip.AddrPort) error {
	id, err := netegress.SocketCgroup(local, remote)
	if errors.Is(err, unix.ENOENT) && !local.Addr().Unmap().IsLoopback() {
		return nil
	}
	if err != nil {
		return err
	}
	path, err := linux.CgroupPath(id)
	if err != nil {
		return err
	}
	return d.refuseCgroup(path, "the peer")
}
