/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taint that programs set: it is in force on all processors when they go on. */
#ifndef WEIR_TAINT_H
#define WEIR_TAINT_H

#include "walk.h"

/* What was remembered under less taint is void once this returns: whoever reads the epoch from now on, reads
 * another. One that the daemon is changing is 0, and will be another. */
static __always_inline void forget(void)
{
	__u32 zero = 0;
	__u64 *epoch = bpf_map_lookup_elem(&epochs, &zero);
	if (!epoch)
		return;
	__u64 before = *(volatile __u64 *)epoch;
	__u64 next = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	if (before)
		__sync_val_compare_and_swap(epoch, before, next);
}

/* 1: set, 0: it was, -1: there is no room for it. */
static __always_inline int set_taint(__u64 cgroup, __u32 bit)
{
	struct state *s = bpf_map_lookup_elem(&cgroups, &cgroup);
	if (!s) {
		struct state fresh = {};
		bpf_map_update_elem(&cgroups, &cgroup, &fresh, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&cgroups, &cgroup);
	}
	if (!s)
		return -1;
	int fresh = !(__sync_fetch_and_or((__u32 *)&s->taint, bit) & bit);
	forget(); /* also when another processor was first: it may not have come so far */
	return fresh;
}

#endif
