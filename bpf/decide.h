/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* May this go out? One answer for every hook. */
#ifndef WEIR_DECIDE_H
#define WEIR_DECIDE_H

#include "policy.h"

#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define EGRESS_EVENTS_SIZE (1 << 20)
#define PORT_DNS 53
#define PORT_HTTPS 443

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, struct rules);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} destinations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct grant_dest);
	__type(value, enum dest_use);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} grant_dests SEC(".maps");

static __always_inline int is_plain(int type, int proto)
{
	return (type == SOCK_STREAM && proto == IPPROTO_TCP) || (type == SOCK_DGRAM && proto == IPPROTO_UDP);
}

/* Granted sockets by cookie: fmod_ret programs cannot read socket storage. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, struct mark);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} socks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EGRESS_EVENTS_SIZE);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} egress_events SEC(".maps");

/* Addresses that allowed names were resolved to. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct lease_key);
	__type(value, struct lease);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} dns_leases SEC(".maps");

/* Destinations that were listed when something was last sent there, on each processor. */
struct allow_key {
	__u64 seq;
	__u64 epoch;
	__u64 sender; /* cgroup of who sends; for a packet, network namespace of its socket */
	__u64 socket; /* cgroup, which never changes */
	struct dest dest;
	__u32 device; /* by which a packet leaves */
};

struct allow_entry {
	struct allow_key key;
	__u32 from[4]; /* of a packet: an address of that network namespace's */
};

#define ALLOW_CACHE_SIZE 64

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ALLOW_CACHE_SIZE);
	__type(key, __u32);
	__type(value, struct allow_entry);
} allow_cache SEC(".maps");

static __always_inline struct allow_entry *find_allowed(const struct allow_key *now)
{
	const __u32 *a = (const __u32 *)now->dest.addr;
	__u32 slot = slot_of((__u64)(a[0] ^ a[1] ^ a[2] ^ a[3]) << 16 ^ now->dest.port ^ now->socket);
	return bpf_map_lookup_elem(&allow_cache, &slot);
}

/* from: of a packet, or 0. */
static __always_inline int was_allowed(struct allow_entry *n, const struct allow_key *now, const __u32 *from)
{
	if (!n || !now->epoch)
		return 0;
	struct allow_key *l = &n->key;
	const __u64 *x = (const __u64 *)now, *y = (const __u64 *)l;
	__u64 seq = read_seq(&l->seq);
	if ((x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]) | (x[5] ^ y[5]) | (x[6] ^ y[6]))
		return 0;
	if (from && ((from[0] ^ n->from[0]) | (from[1] ^ n->from[1]) | (from[2] ^ n->from[2]) |
	             (from[3] ^ n->from[3])))
		return 0;
	return same_seq(&l->seq, seq);
}

static __always_inline void cache_allowed(struct allow_entry *n, const struct allow_key *now,
                                          const __u32 *from)
{
	struct allow_key *l = &n->key;
	if (!n || !now->epoch || !begin_write(&l->seq))
		return;
	l->epoch = now->epoch;
	l->sender = now->sender;
	l->socket = now->socket;
	l->dest = now->dest;
	l->device = now->device;
	if (from)
		__builtin_memcpy(n->from, from, sizeof(n->from));
	end_write(&l->seq);
}

static __always_inline int is_mapped(const struct dest *d)
{
	const __u32 *a = (const __u32 *)d->addr;
	return a[0] == 0 && a[1] == 0 && a[2] == bpf_htonl(0xffff);
}

/* Unspecified addresses reach loopback, so they count as it (B14). What is sent to the last address of
 * 127.0.0.0/8 reaches every socket there, not one whose owner could be asked for; so did the first, once
 * (B26). */
static __always_inline int is_loopback(const struct dest *d)
{
	const __u32 *a = (const __u32 *)d->addr;
	if (is_mapped(d))
		return (d->addr[12] == 127 && a[3] != bpf_htonl(0x7fffffff) &&
		        a[3] != bpf_htonl(0x7f000000)) ||
		       a[3] == 0;
	return a[0] == 0 && a[1] == 0 && a[2] == 0 && (a[3] == bpf_htonl(1) || a[3] == 0);
}

static __always_inline int is_any(const struct dest *d)
{
	const __u32 *a = (const __u32 *)d->addr;
	return !a[3] && (is_mapped(d) || !(a[0] | a[1] | a[2]));
}

static __always_inline int is_link_local(const struct dest *d)
{
	return d->addr[0] == 0xfe && (d->addr[1] & 0xc0) == 0x80;
}

static __always_inline void set_ip4(struct dest *d, __u32 addr)
{
	__u32 *a = (__u32 *)d->addr;
	a[0] = a[1] = 0;
	a[2] = bpf_htonl(0xffff);
	a[3] = addr;
}

static __always_inline void set_ip6(struct dest *d, const __u32 *addr)
{
	__u32 *a = (__u32 *)d->addr;
	a[0] = addr[0];
	a[1] = addr[1];
	a[2] = addr[2];
	a[3] = addr[3];
}

#define BY_DEVICE -2

/* An address as the kernel copied it; family is what the kernel will take
 * AF_UNSPEC for. 1: read, 0: no destination in it, -1: unreadable, BY_DEVICE: it chooses a group's (B89). */
static __always_inline int read_address(struct dest *d, const void *address, int length, __u16 unspec)
{
	__u32 raw[7] = {}; /* family and port; address of IPv4, or flow, address and scope of IPv6 */
	__u32 size = length < 8 ? 2 : length < 24 ? 8 : length < 28 ? 24 : 28;
	if (length < 2 || bpf_probe_read_kernel(raw, size, address))
		return -1;
	__u16 family = raw[0];
	if (!family) {
		if (!unspec)
			return 0;
		family = unspec;
	}
	if (family == AF_INET && length >= 8)
		set_ip4(d, raw[1]);
	else if (family == AF_INET6 && length >= 24)
		set_ip6(d, raw + 2);
	else
		return -1;
	d->port = bpf_ntohs(raw[0] >> 16);
	return family == AF_INET6 && d->addr[0] == 0xff && raw[6] ? BY_DEVICE : 1;
}

static __always_inline void read_peer(struct dest *d, struct sock *sk)
{
	if (sk->__sk_common.skc_family == AF_INET)
		set_ip4(d, sk->__sk_common.skc_daddr);
	else
		BPF_CORE_READ_INTO(&d->addr, sk, __sk_common.skc_v6_daddr);
	d->port = bpf_ntohs(sk->__sk_common.skc_dport);
}

static __always_inline int opens(struct rules *rules, __u32 port, __u32 proto)
{
	for (int i = 0; i < MAX_RULES; i++) {
		struct rule *r = &rules->rule[i];
		if (i >= rules->count)
			return 0;
		if ((!r->proto || r->proto == proto) && port >= r->low && port <= r->high)
			return 1;
	}
	return 0;
}

__noinline int policy_allows(struct prefix *at, __u32 port, __u32 proto)
{
	if (!at)
		return 0;
	struct prefix key = *at; /* 6.1 takes map keys from the stack only */
	struct rules *rules = bpf_map_lookup_elem(&destinations, &key);
	return rules ? opens(rules, port, proto) : 0;
}

/* name_allows says whether an allowed name leads there now. */
__noinline int name_allows(struct cgroup_ctx *cx, struct dest *d)
{
	if (!cx || !d)
		return 0;
	struct lease_key key = {.container = cx->container};
	__builtin_memcpy(key.addr, d->addr, sizeof(key.addr));
	struct lease *l = bpf_map_lookup_elem(&dns_leases, &key);
	if (!l || l->expires <= bpf_ktime_get_boot_ns())
		return 0;
	return opens(&l->rules, d->port, d->proto);
}

/* fresh: for something new, which a closing grant does not open. taint: more than it was given under makes it
 * void at once, before the daemon knows. */
static __always_inline struct grant *open_grant(__u64 id, const struct dest *d, int fresh, __u32 taint)
{
	if (!id)
		return 0;
	struct grant *g = bpf_map_lookup_elem(&grants, &id);
	if (!g || g->expires <= bpf_ktime_get_boot_ns() || g->bytes <= 0 || (fresh && g->closing) ||
	    (taint & ~g->taint))
		return 0;
	struct grant_dest key = {.grant = id, .dest = *d};
	return bpf_map_lookup_elem(&grant_dests, &key) ? g : 0;
}

/* judge says why d is open (below REASON_TAINTED) or shut (from there on).
 * marked is the grant of the socket; it counts for whoever is in that grant or
 * owns it (B44). A packet has no such person: tgid is 0 there. */
__noinline int judge(struct cgroup_ctx *cx, struct dest *d, __u64 marked, __u32 tgid)
{
	if (!cx || !d)
		return REASON_SEALED;
	struct policy *p = policy_of(cx);
	if (!p)
		return REASON_SEALED;
	if (cx->deep)
		return p->mode == MODE_OBSERVE ? REASON_OBSERVED : REASON_DEPTH;
	if (!cx->taint && p->mode != MODE_SEAL)
		return REASON_UNTAINTED;
	if (is_loopback(d))
		return REASON_LOOPBACK;
	if (p->mode == MODE_SEAL)
		return REASON_SEALED;
	struct prefix key = {.bits = 64 + 128, .policy = cx->policy, .generation = p->generation};
	__builtin_memcpy(key.addr, d->addr, sizeof(key.addr));
	if (policy_allows(&key, d->port, d->proto))
		return REASON_LISTED;
	if (name_allows(cx, d))
		return REASON_NAMED;
	if (open_grant(cx->grant, d, tgid != 0, cx->taint))
		return REASON_GRANTED;
	if (open_grant(cx->outer, d, tgid != 0, cx->taint)) {
		cx->grant = cx->outer; /* the one that it is charged to */
		return REASON_GRANTED;
	}
	struct grant *g = open_grant(marked, d, tgid != 0, cx->taint);
	if (g && (!tgid || g->owner == tgid || g->owner == OWNER_ANYBODY))
		return REASON_GRANTED;
	return p->mode == MODE_OBSERVE ? REASON_OBSERVED : REASON_TAINTED;
}

static __always_inline int is_open(int reason)
{
	return reason < REASON_TAINTED;
}

/* Not 0: the reader of egress_events waits to be woken. Else it looks by itself every few milliseconds. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} reader_idle SEC(".maps");

static __always_inline __u64 wakeup(void *ring, __u64 size)
{
	__u32 zero = 0;
	volatile __u32 *waits = bpf_map_lookup_elem(&reader_idle, &zero);
	return (waits && *waits) || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > size / 2
	           ? BPF_RB_FORCE_WAKEUP
	           : BPF_RB_NO_WAKEUP;
}

static __always_inline void describe(struct record *r, struct cgroup_ctx *cx, __u32 kind, __u32 reason)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->time = bpf_ktime_get_boot_ns();
	r->kind = kind;
	r->reason = reason;
	r->container = cx->container;
	r->grant = cx->grant;
	r->taint = cx->taint;
}

/* Who asks; only for programs that run in the asker's own context. */
static __always_inline void describe_current(struct record *r)
{
	r->tgid = bpf_get_current_pid_tgid() >> 32;
	r->uid = bpf_get_current_uid_gid();
	r->cgroup = bpf_get_current_cgroup_id();
	BPF_CORE_READ_INTO(&r->start, bpf_get_current_task_btf(), group_leader, start_boottime);
	bpf_get_current_comm(r->comm, sizeof(r->comm));
}

/* The same of a task, where helpers for the current one are missing. */
static __always_inline void describe_task(struct record *r, struct task_struct *t)
{
	r->tgid = BPF_CORE_READ(t, tgid);
	r->start = BPF_CORE_READ(t, group_leader, start_boottime);
	r->uid = BPF_CORE_READ(t, cred, uid.val);
	BPF_CORE_READ_STR_INTO(&r->comm, t, comm);
}

/* Tells the daemon; losing it is counted and changes no verdict (B31). */
__noinline int emit(struct cgroup_ctx *cx, struct dest *d, __u32 kind, __u32 reason, __u64 cookie)
{
	if (!cx || !d)
		return 0;
	struct record *r = bpf_ringbuf_reserve(&egress_events, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_RECORD);
		return 0;
	}
	describe(r, cx, kind, reason);
	describe_current(r);
	r->cookie = cookie;
	r->dest = *d;
	bpf_ringbuf_submit(r, wakeup(&egress_events, EGRESS_EVENTS_SIZE));
	return 0;
}

#endif
