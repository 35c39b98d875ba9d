/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a cgroup and of all its ancestors, from the root down. */
#ifndef WEIR_WALK_H
#define WEIR_WALK_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "types.h"
#include "volumes.h"

#define EPERM 1
#define SIGKILL 9
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

/* What a judgement stands on, cgroups and policies, is of one epoch: what is remembered from another
 * is judged anew. 0: something is being changed, or a change was cut off, and nothing is remembered. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} epochs SEC(".maps");

/* To be read before what is judged: a change in between then makes the answer void. */
static __always_inline __u64 current_epoch(void)
{
	__u32 zero = 0;
	volatile __u64 *epoch = bpf_map_lookup_elem(&epochs, &zero);
	return epoch ? *epoch : 0;
}

/* How many tasks have left their container since boot; 0: nobody need be asked. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} escapes SEC(".maps");

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
struct cgroup_ctx {
	__u64 cgroup;
	__u64 container; /* first cgroup below the innermost guarded parent */
	__u64 grant;
	__u64 outer; /* grant of a command that this one's descends from */
	__u32 level; /* of container */
	__u32 taint;
	__u32 policy;
	__u32 agent;
	__u32 guarded; /* 0, or GUARDED; and GUARDED_LATE */
	__u32 deep;
};

#define GUARDED 1
#define GUARDED_LATE 2 /* its container is STATE_LATE or STATE_DOUBT */

/* What walks found, on each processor. An entry is odd while it is written and another afterwards:
 * who is interrupted, or comes in between, never takes half of one. */
struct walk_entry {
	__u64 seq;
	__u64 epoch;
	struct cgroup_ctx ctx;
};

#define WALK_CACHE_SIZE 64

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WALK_CACHE_SIZE);
	__type(key, __u32);
	__type(value, struct walk_entry);
} walk_cache SEC(".maps");

#define barrier() asm volatile("" ::: "memory")

/* The verifier wants constants that the compiler has not folded into arithmetic. */
#define ANSWER(value)                                                                                        \
	do {                                                                                                 \
		int answer = (value);                                                                        \
		asm volatile("" : "+r"(answer));                                                             \
		return answer;                                                                               \
	} while (0)

/* One of 64, as taint.filterBit. */
static __always_inline __u32 slot_of(__u64 key)
{
	return key * 0x9e3779b97f4a7c15ULL >> 58;
}

static __always_inline __u64 read_seq(__u64 *seq)
{
	__u64 now = *(volatile __u64 *)seq;
	barrier();
	return now;
}

static __always_inline int same_seq(__u64 *seq, __u64 before)
{
	barrier();
	return !(before & 1) && *(volatile __u64 *)seq == before;
}

static __always_inline int begin_write(__u64 *seq)
{
	__u64 before = read_seq(seq);
	return !(before & 1) && __sync_val_compare_and_swap(seq, before, before + 1) == before;
}

static __always_inline void end_write(__u64 *seq)
{
	barrier();
	*(volatile __u64 *)seq += 1;
}

static __always_inline struct walk_entry *find_walk(__u64 cgroup)
{
	__u32 slot = slot_of(cgroup);
	return bpf_map_lookup_elem(&walk_cache, &slot);
}

static __always_inline int cached_walk(struct cgroup_ctx *cx, struct walk_entry *e, __u64 epoch, __u64 cgroup)
{
	if (!e || !epoch || !cgroup)
		return 0;
	__u64 seq = read_seq(&e->seq);
	if (e->epoch != epoch || e->ctx.cgroup != cgroup)
		return 0;
	*cx = e->ctx;
	return same_seq(&e->seq, seq);
}

static __always_inline void cache_walk(const struct cgroup_ctx *cx, struct walk_entry *e, __u64 epoch)
{
	if (!e || !epoch || !cx->cgroup || !begin_write(&e->seq))
		return;
	e->epoch = epoch;
	e->ctx = *cx;
	end_write(&e->seq);
}

/* Taint only ever adds up; a grant opens only what is above it. A global function is verified once,
 * not in each turn of a loop. */
__noinline int step(struct cgroup_ctx *cx, __u64 id, __u32 level)
{
	if (!cx)
		return 0;
	struct state *s = bpf_map_lookup_elem(&cgroups, &id);
	if (cx->guarded && !cx->container) {
		cx->container = id;
		cx->level = level;
	}
	__u32 taint = (s ? s->taint : 0) | carried_to(id);
	if (taint) {
		cx->taint |= taint;
		cx->grant = cx->outer = 0;
	}
	if (!s)
		return 0;
	if (s->policy)
		cx->policy = s->policy;
	if (s->agent)
		cx->agent = s->agent;
	if (s->flags & STATE_GRANT) {
		cx->outer = cx->grant;
		cx->grant = s->grant;
	}
	if (s->flags & STATE_ALONE && !cx->container) {
		cx->guarded = GUARDED;
		cx->container = id;
		cx->level = level;
	}
	if (s->flags & (STATE_LATE | STATE_DOUBT) && cx->container == id)
		cx->guarded |= GUARDED_LATE;
	if (s->flags & STATE_PARENT) {
		cx->guarded = GUARDED;
		cx->container = 0;
	}
	return 0;
}

/* Nothing above the first guarded parent has a state. So a walk looks only at those levels at which
 * there is one, and there only at what may be one: most tasks of a host are done without a lookup. */
struct parents {
	__u32 levels;
	__u64 filter;
};

static __always_inline struct parents guarded_parents(void)
{
	struct settings *c = configuration();
	struct parents all = {.levels = ~0U, .filter = ~0ULL};
	if (c) {
		all.levels = c->levels;
		all.filter = c->parents;
	}
	return all;
}

static __always_inline int may_be_parent(const struct parents *p, __u64 id)
{
	return p->filter >> slot_of(id) & 1;
}

static __always_inline __u64 cgroup_id(struct cgroup *cg)
{
	return BPF_CORE_READ(cg, kn, id);
}

static __always_inline struct cgroup *cgroup_of(struct task_struct *t)
{
	return BPF_CORE_READ(t, cgroups, dfl_cgrp);
}

static __always_inline __u64 ancestor(struct cgroup *cg, __u32 level)
{
	struct cgroup *a;
	if (level > (__u32)BPF_CORE_READ(cg, level))
		return 0;
	/* the array's bound is the cgroup's own level, checked above */
	bpf_core_read(&a, sizeof(a), (void *)cg + bpf_core_field_offset(cg->ancestors) + level * sizeof(a));
	return cgroup_id(a);
}

/* A level without a guarded parent, before the first one. */
static __always_inline int passed_over(const struct cgroup_ctx *cx, const struct parents *p, __u32 level)
{
	return !cx->guarded && !(p->levels >> level & 1);
}

/* climb looks at one level of the cgroup at an address; not 0: there are no more. */
__noinline int climb(struct cgroup_ctx *cx, const struct parents *p, __u64 at, __u32 level)
{
	if (!cx || !p || passed_over(cx, p, level))
		return 0;
	__u64 id = ancestor((struct cgroup *)at, level);
	if (!id)
		return 1;
	if (cx->guarded || may_be_parent(p, id))
		step(cx, id, level);
	return 0;
}

/* at is a struct cgroup's address: a global function takes no pointer to one. It is read once, so
 * what is remembered is of that cgroup also if its task is moved meanwhile. Global functions are
 * verified once, not at each of their calls. */
__noinline int walk_at(struct cgroup_ctx *cx, __u64 at)
{
	if (!cx)
		return 0;
	struct cgroup *cg = (struct cgroup *)at;
	__u64 epoch = current_epoch(), id = cgroup_id(cg);
	struct walk_entry *entry = find_walk(id);
	if (cached_walk(cx, entry, epoch, id))
		return 0;
	struct parents p = guarded_parents();
	__builtin_memset(cx, 0, sizeof(*cx));
	cx->cgroup = id;
	for (int level = 0; level < MAX_LEVEL; level++)
		if (climb(cx, &p, at, level))
			break;
	cx->deep = (__u32)BPF_CORE_READ(cg, level) >= MAX_LEVEL;
	cache_walk(cx, entry, epoch);
	return 0;
}

/* A pointer as a number: the verifier forgets that it is one. */
static __always_inline __u64 address_of(const void *pointer)
{
	__u64 at = 0;
	bpf_probe_read_kernel(&at, sizeof(at), &pointer);
	return at;
}

static __always_inline void walk_cgroup(struct cgroup_ctx *cx, struct cgroup *cg)
{
	walk_at(cx, address_of(cg));
}

__noinline int walk_current(struct cgroup_ctx *cx)
{
	if (!cx)
		return 0;
	__u64 id = bpf_get_current_cgroup_id();
	if (!cached_walk(cx, find_walk(id), current_epoch(), id))
		walk_cgroup(cx, cgroup_of(bpf_get_current_task_btf()));
	return 0;
}

/* When the current process began. Read so, and not by pointers that the verifier trusts: for each of those it
 * looks through all types of the kernel, several times. */
static __always_inline __u64 started(void)
{
	return BPF_CORE_READ(bpf_get_current_task_btf(), group_leader, start_boottime);
}

/* Processes that have left their container. What is known of one hangs on its first thread, in whose place
 * another one comes that executes something, and for want of memory on none; these two stay. */
struct left {
	__u64 start;
	__u64 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct left);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} all_left SEC(".maps");

static __always_inline struct left left_key(struct task_struct *t)
{
	return (struct left){.start = BPF_CORE_READ(t, group_leader, start_boottime),
	                     .tgid = BPF_CORE_READ(t, tgid)};
}

static __always_inline int has_left(struct task_struct *t)
{
	__u32 zero = 0;
	__u64 *any = bpf_map_lookup_elem(&escapes, &zero);
	struct left key = left_key(t);
	return (!any || *any) && bpf_map_lookup_elem(&all_left, &key);
}

/* A global function, for room on the stack of who calls it. */
__noinline int current_has_left(void)
{
	return has_left(bpf_get_current_task_btf());
}

/* Whether the current task has left its container, or is just being moved out of it. It is killed here,
 * before it goes on, where the daemon did not come first. container: where it is now, or 0. */
static __always_inline int escaped(__u64 container)
{
	__u32 zero = 0;
	__u64 *any = bpf_map_lookup_elem(&escapes, &zero);
	if (any && !*any)
		return 0;
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *id = bpf_task_storage_get(&tasks, t->group_leader, 0, 0);
	int left = id ? id->escaped : current_has_left();
	if (left)
		bpf_send_signal(SIGKILL);
	return left || (id && id->from && id->from != container);
}

struct bpf_prog_array_item___first {
	struct bpf_prog *prog; /* 0: there are no more */
} __attribute__((preserve_access_index));

struct bpf_prog_array___first {
	struct bpf_prog_array_item___first items[1];
} __attribute__((preserve_access_index));

struct cgroup_bpf___first {
	struct bpf_prog_array___first *effective[2];
} __attribute__((preserve_access_index));

struct cgroup___first {
	struct cgroup_bpf___first bpf;
} __attribute__((preserve_access_index));

#define CGROUP_INET_EGRESS 1 /* enum cgroup_bpf_attach_type */

/* outside: nobody guards the current task, and it has left no container. weir_packet hangs on a guarded
 * parent before that is one, and for as long as it is there; a cgroup has from its first moment on what hangs
 * above it. So where no packet is checked, nobody is guarded. Where something hangs, whoever put it there,
 * the walk has the answer. */
static __always_inline int outside(void)
{
	__u32 zero = 0;
	__u64 *any = bpf_map_lookup_elem(&escapes, &zero);
	struct cgroup___first *cg = (struct cgroup___first *)bpf_get_current_task_btf()->cgroups->dfl_cgrp;
	struct bpf_prog_array___first *all = cg->bpf.effective[CGROUP_INET_EGRESS];
	if (!all || all->items[0].prog)
		return 0;
	barrier(); /* who is moved out is counted before he is there */
	return any && !*(volatile __u64 *)any;
}

/* Where the current task stands. One that has left its container lives on, outside, until somebody kills it:
 * nothing is open to it (B77). */
__noinline int judged_ctx(struct cgroup_ctx *cx)
{
	if (!cx)
		return 0;
	walk_current(cx);
	if (!escaped(cx->container))
		return 0;
	__builtin_memset(cx, 0, sizeof(*cx));
	cx->guarded = GUARDED;
	cx->deep = 1;
	return 0;
}

/* arriving: what a runtime runs in a new container, before it becomes the container's own program. */
static __always_inline int arriving(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *id = bpf_task_storage_get(&tasks, t->group_leader, 0, 0);
	return id && id->arriving > bpf_ktime_get_boot_ns() / 1000000000;
}

__noinline int climb_skb(struct __sk_buff *skb, struct cgroup_ctx *cx, const struct parents *p, __u32 level)
{
	if (!cx || !p || passed_over(cx, p, level))
		return 0;
	__u64 id = bpf_skb_ancestor_cgroup_id(skb, level);
	if (!id)
		return 1;
	if (cx->guarded || may_be_parent(p, id))
		step(cx, id, level);
	return 0;
}

/* A packet belongs to its socket's cgroup, which never changes. */
static __always_inline void walk_skb(struct cgroup_ctx *cx, struct __sk_buff *skb, __u64 epoch, __u64 cgroup)
{
	struct walk_entry *entry = find_walk(cgroup);
	if (cached_walk(cx, entry, epoch, cgroup))
		return;
	struct parents p = guarded_parents();
	__builtin_memset(cx, 0, sizeof(*cx));
	cx->cgroup = cgroup;
	for (int level = 0; level < MAX_LEVEL; level++)
		if (climb_skb(skb, cx, &p, level))
			break;
	cx->deep = bpf_skb_ancestor_cgroup_id(skb, MAX_LEVEL) != 0;
	cache_walk(cx, entry, epoch);
}

/* inside: cg belongs to the same container as cx. */
static __always_inline int inside(struct cgroup_ctx *cx, struct cgroup *cg)
{
	return cx->container && ancestor(cg, cx->level) == cx->container;
}

#endif
