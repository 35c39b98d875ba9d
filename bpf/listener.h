/* Who listens on loopback. */
#ifndef WEIR_LISTENER_H
#define WEIR_LISTENER_H

#include "names.h"

/* An unspecified address connects to loopback. */
static __always_inline void lookup_address(__u32 *out, const struct dest *d, int ip4)
{
	const __u32 *a = (const __u32 *)d->addr;
	if (ip4) {
		out[0] = a[3] ? a[3] : bpf_htonl(0x7f000001);
		return;
	}
	out[0] = a[0];
	out[1] = a[1];
	out[2] = a[2];
	out[3] = a[3] ? a[3] : bpf_htonl(1);
}

static __always_inline struct sock *kernel_socket(struct bpf_sock *sk)
{
	return (struct sock *)address_of(sk);
}

/* There is no helper for it here. */
static __always_inline struct cgroup *cgroup_of_socket(struct bpf_sock *sk)
{
	return BPF_CORE_READ(kernel_socket(sk), sk_cgrp_data.cgroup);
}

#define MAX_GROUP 1024

/* The sockets that share a port by SO_REUSEPORT, and the container that they all have to be in. */
struct group {
	__u64 sockets;
	__u64 container;
	__u32 level;
	__u32 foreign;
};

static long look_at(__u32 i, struct group *g)
{
	struct sock *sk = 0;
	bpf_probe_read_kernel(&sk, sizeof(sk), (struct sock **)g->sockets + i);
	if (ancestor(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), g->level) == g->container)
		return 0;
	g->foreign = 1;
	return 1;
}

/* Who of a group hears a packet is chosen when that arrives, by a program that any of them may have set: so
 * one that is foreign makes the group foreign (B63). peer is a struct sock's address, as in walk_at. */
__noinline int shared_outside(struct where *w, __u64 peer)
{
	if (!w)
		return 1;
	struct sock_reuseport *all = BPF_CORE_READ((struct sock *)peer, sk_reuseport_cb);
	if (!all)
		return 0;
	struct group g = {.container = w->container, .level = w->level};
	g.sockets = (__u64)all + bpf_core_field_offset(all->socks);
	__u32 count = BPF_CORE_READ(all, num_socks);
	if (count > MAX_GROUP)
		return 1;
	bpf_loop(count, look_at, &g, 0);
	return g.foreign;
}

enum listener { LISTENS_NOBODY, LISTENS_OWN, LISTENS_FOREIGN };

/* Nobody listening is no way out; somebody else's listener is (B26), but for the sensor's resolver. */
static __always_inline enum listener listener(struct bpf_sock_addr *ctx, struct where *w,
                                              const struct dest *d)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *peer;
	__u32 size;
	if (is_mapped(d)) {
		lookup_address(&tuple.ipv4.daddr, d, 1);
		tuple.ipv4.dport = bpf_htons(d->port);
		size = sizeof(tuple.ipv4);
	} else {
		lookup_address(tuple.ipv6.daddr, d, 0);
		tuple.ipv6.dport = bpf_htons(d->port);
		size = sizeof(tuple.ipv6);
	}
	if (d->proto == IPPROTO_TCP)
		peer = bpf_sk_lookup_tcp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	else
		peer = bpf_sk_lookup_udp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!peer)
		return LISTENS_NOBODY;
	int own =
	    answers(w, peer) || (inside(w, cgroup_of_socket(peer)) && !shared_outside(w, address_of(peer)));
	bpf_sk_release(peer);
	return own ? LISTENS_OWN : LISTENS_FOREIGN;
}

static __always_inline void read_dest(struct bpf_sock_addr *ctx, struct dest *d, int ip4)
{
	d->port = bpf_ntohs(ctx->user_port);
	d->proto = ctx->protocol;
	if (ip4) {
		set_ip4(d, ctx->user_ip4);
	} else {
		__u32 a[4] = {ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]};
		set_ip6(d, a);
	}
}

#endif
