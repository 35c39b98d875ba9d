/* The state of a cgroup and of all its ancestors, from the root down. */
#ifndef WEIR_WALK_H
#define WEIR_WALK_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "types.h"

#define EPERM 1
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define AF_NETLINK 16

/* Never an LRU: an evicted entry would be lost taint. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct state);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct grant);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} grants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} counters SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &what);
	if (n)
		*n += 1;
}

static __always_inline struct settings *configuration(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&config, &zero);
}

/* Where in the guarded world something stands. */
struct where {
	__u64 container; /* first cgroup below the innermost guarded parent */
	__u64 grant;
	__u32 level; /* of container */
	__u32 taint;
	__u32 policy;
	__u32 agent;
	__u32 guarded;
	__u32 deep;
};

/* Taint only ever adds up; a grant opens only what is above it. */
static __always_inline void step(struct where *w, __u64 id, __u32 level)
{
	struct state *s = bpf_map_lookup_elem(&cgroups, &id);
	if (w->guarded && !w->container) {
		w->container = id;
		w->level = level;
	}
	if (!s)
		return;
	if (s->taint) {
		w->taint |= s->taint;
		w->grant = 0;
	}
	if (s->policy)
		w->policy = s->policy;
	if (s->agent)
		w->agent = s->agent;
	if (s->flags & STATE_GRANT)
		w->grant = s->grant;
	if (s->flags & STATE_PARENT) {
		w->guarded = 1;
		w->container = 0;
	}
}

/* Nothing above the first guarded parent has a state, so a walk passes those levels over, and most
 * tasks of a host are done after one lookup. */
static __always_inline __u32 parent_levels(void)
{
	struct settings *c = configuration();
	return c ? c->levels : ~0U;
}

/* Global functions are verified once, not at each of their calls. */
__noinline int walk_current(struct where *w)
{
	if (!w)
		return 0;
	__u32 levels = parent_levels();
	__builtin_memset(w, 0, sizeof(*w));
	for (int level = 0; level < MAX_LEVEL; level++) {
		if (!w->guarded && !(levels >> level))
			return 0;
		if (!w->guarded && !(levels >> level & 1))
			continue;
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);
		if (!id)
			return 0;
		step(w, id, level);
	}
	w->deep = bpf_get_current_ancestor_cgroup_id(MAX_LEVEL) != 0;
	return 0;
}

static __always_inline int walk_skb(struct where *w, struct __sk_buff *skb)
{
	__u32 levels = parent_levels();
	__builtin_memset(w, 0, sizeof(*w));
	for (int level = 0; level < MAX_LEVEL; level++) {
		if (!w->guarded && !(levels >> level))
			return 0;
		if (!w->guarded && !(levels >> level & 1))
			continue;
		__u64 id = bpf_skb_ancestor_cgroup_id(skb, level);
		if (!id)
			return 0;
		step(w, id, level);
	}
	w->deep = bpf_skb_ancestor_cgroup_id(skb, MAX_LEVEL) != 0;
	return 0;
}

static __always_inline __u64 ancestor(struct cgroup *cg, __u32 level)
{
	struct cgroup *a;
	if (level > (__u32)BPF_CORE_READ(cg, level))
		return 0;
	/* the array's bound is the cgroup's own level, checked above */
	bpf_core_read(&a, sizeof(a), (void *)cg + bpf_core_field_offset(cg->ancestors) + level * sizeof(a));
	return BPF_CORE_READ(a, kn, id);
}

/* at is a struct cgroup's address: a global function takes no pointer to one. */
__noinline int walk_at(struct where *w, __u64 at)
{
	if (!w)
		return 0;
	struct cgroup *cg = (struct cgroup *)at;
	__u32 levels = parent_levels();
	__builtin_memset(w, 0, sizeof(*w));
	for (int level = 0; level < MAX_LEVEL; level++) {
		if (!w->guarded && !(levels >> level))
			return 0;
		if (!w->guarded && !(levels >> level & 1))
			continue;
		__u64 id = ancestor(cg, level);
		if (!id)
			return 0;
		step(w, id, level);
	}
	w->deep = BPF_CORE_READ(cg, level) >= MAX_LEVEL;
	return 0;
}

static __always_inline void walk_cgroup(struct where *w, struct cgroup *cg)
{
	__u64 at = 0;
	bpf_probe_read_kernel(&at, sizeof(at), &cg); /* the verifier forgets that it is a pointer */
	walk_at(w, at);
}

/* inside: cg belongs to the same container as w. */
static __always_inline int inside(struct where *w, struct cgroup *cg)
{
	return w->container && ancestor(cg, w->level) == w->container;
}

static __always_inline struct cgroup *cgroup_of(struct task_struct *t)
{
	return BPF_CORE_READ(t, cgroups, dfl_cgrp);
}

#endif
