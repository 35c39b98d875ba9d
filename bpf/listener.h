/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
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

static long check_member(__u32 i, struct group *g)
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
__noinline int shared_outside(struct cgroup_ctx *cx, __u64 peer)
{
	if (!cx)
		return 1;
	struct sock_reuseport *all = BPF_CORE_READ((struct sock *)peer, sk_reuseport_cb);
	if (!all)
		return 0;
	struct group g = {.container = cx->container, .level = cx->level};
	g.sockets = (__u64)all + bpf_core_field_offset(all->socks);
	__u32 count = BPF_CORE_READ(all, num_socks);
	if (count > MAX_GROUP)
		return 1;
	bpf_loop(count, check_member, &g, 0);
	return g.foreign;
}

/* As the kernel keeps UDP's table since 6.2. */
struct netns_ipv4___table {
	struct udp_table *udp_table;
} __attribute__((preserve_access_index));

struct net___table {
	struct netns_ipv4___table ipv4;
} __attribute__((preserve_access_index));

#define MAX_BOUND 8192

/* A look at the UDP sockets of one slot of the kernel's table, which is by port and network namespace. */
struct bound {
	struct dest to;
	__u64 node;
	__u64 net;
	__u64 container;
	__u32 level;
};

/* A socket of IPv6 that is bound to no address hears IPv4, too. */
static __always_inline int hears(struct sock *sk, const struct dest *to)
{
	const __u32 *d = (const __u32 *)to->addr;
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		__u32 at = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		return is_mapped(to) && (!at || at == d[3]);
	}
	__u32 a[4];
	BPF_CORE_READ_INTO(&a, sk, __sk_common.skc_v6_rcv_saddr);
	return !(a[0] | a[1] | a[2] | a[3]) ||
	       !((a[0] ^ d[0]) | (a[1] ^ d[1]) | (a[2] ^ d[2]) | (a[3] ^ d[3]));
}

static long next_bound(__u32 i, struct bound *b)
{
	if (!b->node)
		return 1;
	struct hlist_node *node = (void *)b->node;
	struct sock *sk = (void *)node - bpf_core_field_offset(struct sock, __sk_common.skc_node);
	if (BPF_CORE_READ(sk, __sk_common.skc_num) == b->to.port &&
	    (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net) == b->net && hears(sk, &b->to) &&
	    ancestor(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), b->level) != b->container)
		return 1;
	b->node = (__u64)BPF_CORE_READ(node, next);
	return 0;
}

/* heard_outside: somebody outside has the port of to as well, and hears what is sent there as soon as nobody
 * in the container does: who of them hears a datagram is found out when it arrives (B72). at is a UDP
 * socket's address, of the same network namespace. */
__noinline int heard_outside(struct cgroup_ctx *cx, __u64 at, struct dest *to)
{
	if (!cx || !to)
		return 1;
	struct sock *sk = (struct sock *)at;
	struct net *net = BPF_CORE_READ(sk, __sk_common.skc_net.net);
	struct udp_table *table = BPF_CORE_READ(sk, __sk_common.skc_prot, h.udp_table);
	if (!table && bpf_core_field_exists(struct net___table, ipv4.udp_table))
		table = BPF_CORE_READ((struct net___table *)net, ipv4.udp_table);
	__u32 slot = (to->port + BPF_CORE_READ(net, hash_mix)) & BPF_CORE_READ(table, mask);
	struct udp_hslot *first =
	    (void *)BPF_CORE_READ(table, hash) + slot * bpf_core_type_size(struct udp_hslot);
	struct bound b = {
	    .to = *to,
	    .node = (__u64)BPF_CORE_READ(first, head.first),
	    .net = (__u64)net,
	    .container = cx->container,
	    .level = cx->level,
	};
	bpf_loop(MAX_BOUND, next_bound, &b, 0);
	return b.node != 0;
}

enum listener { LISTENS_NOBODY, LISTENS_OWN, LISTENS_SENSOR, LISTENS_FOREIGN };

/* Nobody listening is no way out; somebody else's listener is (B26), but for the sensor's resolver. */
static __always_inline enum listener listener(struct bpf_sock_addr *ctx, struct cgroup_ctx *cx,
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
	int own = is_resolver_sk(cx, peer) ||
	          (inside(cx, cgroup_of_socket(peer)) && !shared_outside(cx, address_of(peer)));
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
