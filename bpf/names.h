/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses that stand for names, and the resolver that hands them out. */
#ifndef WEIR_NAMES_H
#define WEIR_NAMES_H

#include "decide.h"

#define BPF_F_CLONE (1U << 9)
#define BPF_F_CURRENT_NETNS -1
#define SYNTHETIC4 0xc6120000 /* 198.18.0.0/15, for benchmarks: nobody is there */
#define SYNTHETIC6_0 0xfd776569
#define SYNTHETIC6_1 0x72000000 /* fd77:6569:7200::/48 */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fake_ip_key);
	__type(value, struct fake_ip);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fake_ips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct resolver_key);
	__type(value, struct resolver);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} resolvers SEC(".maps");

/* The sensor's own sockets, and those that are accepted from them, by the container that may talk to them: no
 * other listener outside is reached over loopback (B26). Gone with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} resolver_sks SEC(".maps");

static __always_inline int in_synthetic_range(const struct dest *d)
{
	const __u32 *a = (const __u32 *)d->addr;
	if (is_mapped(d))
		return (a[3] & bpf_htonl(0xfffe0000)) == bpf_htonl(SYNTHETIC4);
	return a[0] == bpf_htonl(SYNTHETIC6_0) && (a[1] & bpf_htonl(0xffff0000)) == bpf_htonl(SYNTHETIC6_1);
}

/* is_synthetic: d stands for a name in the container. */
__noinline int is_synthetic(struct cgroup_ctx *cx, struct dest *d)
{
	if (!cx || !d || !in_synthetic_range(d))
		return 0;
	struct fake_ip_key key = {.container = cx->container};
	__builtin_memcpy(key.addr, d->addr, sizeof(key.addr));
	return bpf_map_lookup_elem(&fake_ips, &key) != 0;
}

/* The port of the resolver that a question to d goes to while the container is tainted; 0: there is none, and
 * d is judged as every destination. sends: it goes in a datagram that bears its own address. Every datagram
 * of the host pays for the programs that lead those, so they are attached to a container that has sent one.
 */
__noinline int resolver_for(struct cgroup_ctx *cx, struct dest *d, __u64 netns, __u32 sends)
{
	if (!cx || !d || d->port != PORT_DNS || !cx->taint || cx->deep)
		return 0;
	struct policy *p = policy_of(cx);
	if (!p || p->mode != MODE_ENFORCE)
		return 0;
	struct resolver_key key = {.container = cx->container, .netns = netns};
	struct resolver *r = bpf_map_lookup_elem(&resolvers, &key);
	if (!r || !(is_mapped(d) || r->flags & RESOLVER_SIX))
		return 0;
	if (sends && !(r->flags & RESOLVER_SENDS)) {
		__sync_fetch_and_or((__u32 *)&r->flags, RESOLVER_WANTED);
		return 0;
	}
	return r->port;
}

/* is_resolver_sk: peer is a socket of the sensor's, on which it answers this container. */
static __always_inline int is_resolver_sk(struct cgroup_ctx *cx, struct bpf_sock *peer)
{
	__u64 *container = bpf_sk_storage_get(&resolver_sks, peer, 0, 0);
	return container && *container == cx->container;
}

#endif
