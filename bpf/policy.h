/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policies in force, by slot. */
#ifndef WEIR_POLICY_H
#define WEIR_POLICY_H

#include "walk.h"

#define MAX_POLICIES 64

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_POLICIES);
	__type(key, __u32);
	__type(value, struct policy);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} policies SEC(".maps");

static __always_inline struct policy *policy_of(struct cgroup_ctx *cx)
{
	__u32 slot = cx->policy;
	return bpf_map_lookup_elem(&policies, &slot);
}

/* Something stands against what cx does, whose policy is p. */
static __always_inline int is_restricted(const struct cgroup_ctx *cx, const struct policy *p)
{
	if (p && p->mode == MODE_OBSERVE)
		return 0;
	return cx->taint || cx->deep || !p || p->mode == MODE_SEAL;
}

/* Nothing stands against cx: it is not guarded, only watched, or clean. */
static __always_inline int is_unrestricted(struct cgroup_ctx *cx)
{
	return !cx->guarded || !is_restricted(cx, policy_of(cx));
}

/* Nothing ever stands against cx. */
static __always_inline int is_let_be(struct cgroup_ctx *cx)
{
	struct policy *p = policy_of(cx);
	return !cx->guarded || (p && p->mode == MODE_OBSERVE);
}

#endif
