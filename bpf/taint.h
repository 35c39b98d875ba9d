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

struct spreading {
	__u32 changed;
	__u32 pad;
};

/* The taint of a container that uses volumes, without theirs: its own, and that of the parent that it is
 * below. */
static __always_inline __u32 own_taint(__u64 container, struct volume_use *u)
{
	__u64 above = u->above;
	struct state *own = bpf_map_lookup_elem(&cgroups, &container);
	struct state *parent = bpf_map_lookup_elem(&cgroups, &above);
	return (own ? *(volatile __u32 *)&own->taint : 0) | (parent ? *(volatile __u32 *)&parent->taint : 0);
}

/* spread_of gives what one container is tainted with to the volumes that it has written to. */
static long spread_of(void *map, __u64 *container, struct volume_use *u, struct spreading *s)
{
	struct volume_bits *v = volumes_carry();
	__u64 writes = now_of(&u->writes), reads = now_of(&u->reads);
	if (!v || !writes)
		return 0;
	__u32 taint = own_taint(*container, u);
	for (int bit = 0; bit < TAINT_BITS; bit++) {
		__u64 has = now_of(&v->carried[bit]);
		if ((!(taint >> bit & 1) && !(reads & has)) || !(writes & ~has))
			continue;
		__sync_fetch_and_or(&v->carried[bit], writes);
		s->changed = 1;
	}
	return 0;
}

static long spread_round(__u32 i, struct spreading *s)
{
	s->changed = 0;
	bpf_for_each_map_elem(&volume_uses, spread_of, s, 0);
	return !s->changed;
}

/* spread brings what volumes carry up to date with their containers, and on from volume to volume: each round
 * but the last adds to what some volume carries. Whoever changes a use or a taint calls it afterwards, so of
 * two at the same time one sees the other's. */
__noinline int spread(void)
{
	struct spreading s = {};
	if (!volumes_listed())
		return 0;
	bpf_loop(TAINT_BITS * MAX_VOLUMES + 1, spread_round, &s, 0);
	return 0;
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
	spread();
	forget(); /* also when another processor was first: it may not have come so far */
	return fresh;
}

#endif
