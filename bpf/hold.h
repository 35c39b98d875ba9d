/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who waits until there is a verdict, and the questions to the daemon. */
#ifndef WEIR_HOLD_H
#define WEIR_HOLD_H

#include "policy.h"

#define SIGCONT 18
#define SIGSTOP 19
#define HEARTBEAT_NS 3000000000ULL

/* What waits for a verdict. Pinned: the watcher ends the wait when the daemon dies. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct hold_key);
	__type(value, struct hold);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} held SEC(".maps");

/* One container's refusals cannot take the place of questions, and what is pushed out is asked or told once
 * more (B95). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct hold_key);
	__type(value, struct refusal);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} refusals SEC(".maps");

#define REFUSAL_NS 300000000000ULL

static __always_inline int is_refused(struct hold_key *key, __u64 start)
{
	struct refusal *r = bpf_map_lookup_elem(&refusals, key);
	return r && r->start == start && bpf_ktime_get_boot_ns() - r->since < REFUSAL_NS;
}

/* Questions have a ring of their own: no flood of other events delays them (B31). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} hold_reqs SEC(".maps");

/* Without a daemon that beats, nobody would be there to answer. */
static __always_inline int is_alone(void)
{
	struct settings *c = configuration();
	__u64 now = bpf_ktime_get_boot_ns();
	return !c || (now > c->heartbeat && now - c->heartbeat > HEARTBEAT_NS);
}

/* Only commands are held: an agent would freeze with all its threads. Where the agent is not known, it is who
 * was started from outside. */
static __always_inline int is_command(struct cgroup_ctx *cx, struct policy *p)
{
	if (!(p->flags & POLICY_HOLD) || !(p->flags & POLICY_ASK) || is_alone())
		return 0;
	if (cx->agent)
		return bpf_get_current_pid_tgid() >> 32 != cx->agent;
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_struct *parent = BPF_CORE_READ(t, real_parent);
	return inside(cx, cgroup_of(parent));
}

#endif
