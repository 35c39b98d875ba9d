/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What comes from a destination that nobody trusts is input that somebody else controls (G2). */
#ifndef WEIR_TRUST_H
#define WEIR_TRUST_H

#include "decide.h"
#include "mark.h"
#include "taint.h"

#define REPLY_ID (1ULL << 63) /* of grants that programs make; the rest is the socket's cookie */
#define REPLY_NS (3600 * 1000000000ULL)

enum trust {
	TRUST_NONE = 0,
	TRUST_ALL = 1,
	TRUST_DNS = 2, /* a name server: its port 53 */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, enum trust);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} trusted SEC(".maps");

/* checks_trust says whether a first packet from or to outside would still taint. */
static __always_inline int checks_trust(struct cgroup_ctx *cx, struct policy *p)
{
	return p && (p->flags & POLICY_TRUST) && !(cx->taint & TAINT_CORRUPTION) && p->mode != MODE_SEAL;
}

static __always_inline int is_trusted(struct cgroup_ctx *cx, struct policy *p, const struct dest *peer)
{
	if (is_loopback(peer))
		return 1;
	struct prefix key = {.bits = 64 + 128, .policy = cx->policy, .generation = p->generation};
	__builtin_memcpy(key.addr, peer->addr, sizeof(key.addr));
	enum trust *t = bpf_map_lookup_elem(&trusted, &key);
	return t && (*t == TRUST_ALL || (*t == TRUST_DNS && peer->port == PORT_DNS));
}

/* allow_reply lets the socket that taints a container finish what it began: it may send a little to that one
 * peer. Not inlined: there is little room on the stack of who calls it.
 */
static __noinline __u64 allow_reply(struct policy *p, struct bpf_sock *sk, __u64 id, __u64 container,
                                    const struct dest *peer)
{
	__u64 cookie = id & ~REPLY_ID;
	struct grant g = {.expires = bpf_ktime_get_boot_ns() + REPLY_NS,
	                  .bytes = p->reply_budget,
	                  .owner = OWNER_ANYBODY,
	                  .taint = TAINT_CORRUPTION,
	                  .container = container};
	struct grant_dest key = {.grant = id, .dest = *peer};
	struct mark m = {.grant = id, .dest = *peer};
	enum dest_use use = DEST_USED;
	if (!cookie || !sk || bpf_map_update_elem(&grant_dests, &key, &use, BPF_ANY) ||
	    bpf_map_update_elem(&grants, &id, &g, BPF_ANY))
		return 0;
	bpf_map_update_elem(&socks, &cookie, &m, BPF_ANY);
	struct mark *kept = bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (kept)
		keep_mark(kept, &m);
	return id;
}

/* bpf/vmlinux.h would need all that a lock is made of. */
struct sock___lock {
	struct {
		int owned;
	} sk_lock;
} __attribute__((preserve_access_index));

/* Who sends from sk, if that is sure: a datagram leaves in its sender's own call, and what a stream sends in
 * the call of who has locked it. All else may be sent by an interrupt, whosoever runs then. */
static __always_inline void describe_sender(struct record *r, struct cgroup_ctx *cx, struct bpf_sock *sk)
{
	struct task_struct *t = bpf_get_current_task_btf();
	if (!sk ||
	    (r->dest.proto != IPPROTO_UDP &&
	     !BPF_CORE_READ((struct sock___lock *)kernel_socket(sk), sk_lock.owned)) ||
	    !inside(cx, cgroup_of(t)))
		return;
	describe_task(r, t);
}

/* taint_for_peer taints before the packet goes on; grant is what may go on after it, sk what sends it: none
 * of what arrives. answers: the policy by which the grant is to be made, for the socket that was first alone
 * (B94). Without room for the taint, the packet does not go on. */
static __always_inline int taint_for_peer(struct cgroup_ctx *cx, __u64 cgroup, const struct dest *peer,
                                          __u64 grant, struct bpf_sock *sk, struct policy *answers)
{
	__u64 id = cx->container ? cx->container : cgroup;
	int fresh = set_taint(id, TAINT_CORRUPTION);
	if (fresh < 0)
		return 0;
	cx->taint |= TAINT_CORRUPTION;
	if (!fresh)
		return 1;
	if (answers)
		grant = allow_reply(answers, sk, grant, id, peer);
	struct record *r = bpf_ringbuf_reserve(&egress_events, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_RECORD); /* the daemon finds the taint itself */
		return 1;
	}
	describe(r, cx, RECORD_TAINT, REASON_UNTRUSTED);
	r->container = id;
	r->grant = grant;
	r->dest = *peer;
	describe_sender(r, cx, sk);
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return 1;
}

#endif
