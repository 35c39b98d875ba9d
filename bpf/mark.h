/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which way a socket's packets go, and what they may go by. */
#ifndef WEIR_MARK_H
#define WEIR_MARK_H

#include "decide.h"

/* Read by the packet check: a mark lives as long as its socket, longer than its cookie's entry. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mark);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} marks SEC(".maps");

/* keep_mark leaves what the socket's own messages were noted for. */
static __always_inline void keep_mark(struct mark *kept, const struct mark *m)
{
	kept->told = (kept->told & (MARK_ASTRAY | MARK_SOURCED)) | m->told;
	kept->grant = m->grant;
	kept->dest = m->dest;
}

enum sock_flags___way {
	SOCK_LOCALROUTE___way = 13,
};

struct sock_common___flags {
	long unsigned int skc_flags;
} __attribute__((preserve_access_index));

struct sock___flags {
	struct sock_common___flags __sk_common;
} __attribute__((preserve_access_index));

/* passes_gateways: only who is on the link is asked, whatever gateway leads there (B111). */
static __always_inline int passes_gateways(struct sock *sk)
{
	int bit = bpf_core_enum_value_exists(enum sock_flags___way, SOCK_LOCALROUTE___way)
	              ? bpf_core_enum_value(enum sock_flags___way, SOCK_LOCALROUTE___way)
	              : SOCK_LOCALROUTE___way; /* as it is on 6.1 and 6.12 */
	return BPF_CORE_READ((struct sock___flags *)sk, __sk_common.skc_flags) >> bit & 1;
}

#define MAX_ADDRESSES 4096

/* A look at the addresses of a network namespace, one after the other: first at those of one device. */
struct addresses {
	__u32 wanted[4]; /* IPv4's as the first */
	__u64 at;        /* entry of the list of IPv6 addresses, or an IPv4 address */
	__u64 end;       /* of that list */
	__u64 device;    /* entry of the list of devices */
	__u64 devices;
	__u32 ip4;
	__u32 found;
};

static __always_inline void first_address(struct addresses *a, struct net_device *dev)
{
	if (a->ip4) {
		a->at = (__u64)BPF_CORE_READ(dev, ip_ptr, ifa_list);
		return;
	}
	struct inet6_dev *six = BPF_CORE_READ(dev, ip6_ptr);
	a->end = six ? (__u64)six + bpf_core_field_offset(six->addr_list) : 0;
	a->at = six ? (__u64)BPF_CORE_READ(six, addr_list.next) : 0;
}

static long next_address(__u32 i, struct addresses *a)
{
	if (a->at == a->end || !a->at) {
		struct list_head *entry = (struct list_head *)a->device;
		a->device = (__u64)BPF_CORE_READ(entry, next);
		if (!a->device || a->device == a->devices)
			return 1;
		struct net_device *dev = 0;
		first_address(a, (void *)a->device - bpf_core_field_offset(dev->dev_list));
		return 0;
	}
	__u32 addr[4] = {};
	if (a->ip4) {
		struct in_ifaddr *one = (struct in_ifaddr *)a->at;
		addr[0] = BPF_CORE_READ(one, ifa_local);
		a->at = (__u64)BPF_CORE_READ(one, ifa_next);
	} else {
		struct inet6_ifaddr *one = 0;
		one = (void *)a->at - bpf_core_field_offset(one->if_list);
		BPF_CORE_READ_INTO(&addr, one, addr);
		a->at = (__u64)BPF_CORE_READ(one, if_list.next);
	}
	if ((addr[0] ^ a->wanted[0]) | (addr[1] ^ a->wanted[1]) | (addr[2] ^ a->wanted[2]) |
	    (addr[3] ^ a->wanted[3]))
		return 0;
	a->found = 1;
	return 1;
}

/* is_here: d is an address of a network namespace. Both and a device, which is looked at first or 0, are
 * addresses: a global function takes no pointer to what the kernel has there. */
__noinline int is_here(const struct dest *d, __u64 net, __u64 dev)
{
	if (!d)
		return 0;
	const __u32 *wanted = (const __u32 *)d->addr;
	struct addresses a = {.ip4 = is_mapped(d)};
	if (a.ip4)
		a.wanted[0] = wanted[3];
	else
		__builtin_memcpy(a.wanted, wanted, sizeof(a.wanted));
	a.devices = net + bpf_core_field_offset(struct net, dev_base_head);
	a.device = a.devices;
	if (dev)
		first_address(&a, (struct net_device *)dev);
	bpf_loop(MAX_ADDRESSES, next_address, &a, 0);
	return a.found;
}

struct ipv6_pinfo___source {
	struct in6_addr saddr;
} __attribute__((preserve_access_index));

struct inet_sock___source {
	__u32 inet_saddr;
	struct ipv6_pinfo___source *pinet6;
} __attribute__((preserve_access_index));

/* own_source is the address that a socket was bound to, or got when it was connected; or none, of zeros. */
static __always_inline void own_source(struct sock *sk, struct dest *d)
{
	struct inet_sock___source *inet = (void *)sk;
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET)
		set_ip4(d, BPF_CORE_READ(inet, inet_saddr));
	else
		BPF_CORE_READ_INTO(&d->addr, inet, pinet6, saddr);
}

/* is_elsewhere: a source that is not this machine's. Loopback counts as here, and so do zeros. */
static __always_inline int is_elsewhere(const struct dest *d, struct sock *sk)
{
	return !is_loopback(d) && !is_here(d, (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net), 0);
}

#endif
