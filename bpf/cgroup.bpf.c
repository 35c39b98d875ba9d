/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cgroups come, tasks move: taint and grants must not be left or entered that way (B28, B37). */
#include "taint.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} cgroup_events SEC(".maps");

/* Taint that a container has from its first instruction on, also while no daemon runs: what the policy says
 * of all, and what is stored of one that is started again (B33, B45). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct initial_taint_key);
	__type(value, __u32); /* bits of taint */
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} initial_taint SEC(".maps");

/* Rings have no value type: this names theirs for bpf2go. */
const struct record *unused_record __attribute__((unused));

static __always_inline void emit_cgroup(struct cgroup_ctx *cx, __u32 kind, struct cgroup *cg,
                                        struct task_struct *target, __u64 from)
{
	struct record *r = bpf_ringbuf_reserve(&cgroup_events, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_CGROUP);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->time = bpf_ktime_get_boot_ns();
	r->kind = kind;
	r->container = cx->container;
	r->taint = cx->taint;
	r->grant = cx->grant;
	r->cgroup = BPF_CORE_READ(cg, kn, id);
	r->parent = from;
	r->tgid = bpf_get_current_pid_tgid() >> 32;
	r->uid = bpf_get_current_uid_gid();
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	if (target) {
		r->target = BPF_CORE_READ(target, tgid);
		r->start = BPF_CORE_READ(target, group_leader, start_boottime);
	}
	bpf_ringbuf_submit(r, 0);
}

/* at is the address of a cgroup that nobody can see yet: cgroup_mkdir activates its directory afterwards. */
__noinline int set_initial_taint(__u64 at)
{
	struct cgroup *cg = (struct cgroup *)at;
	struct initial_taint_key key = {.parent = ancestor(cg, BPF_CORE_READ(cg, level) - 1)};
	struct state fresh = {};
	__u64 id = cgroup_id(cg);
	struct state *parent = bpf_map_lookup_elem(&cgroups, &key.parent);
	if (!parent || !(parent->flags & STATE_PARENT))
		return 0;
	__u32 *all = bpf_map_lookup_elem(&initial_taint, &key);
	if (all)
		fresh.taint = *all;
	bpf_probe_read_kernel_str(key.name, sizeof(key.name), BPF_CORE_READ(cg, kn, name));
	__u32 *own = bpf_map_lookup_elem(&initial_taint, &key);
	if (own)
		fresh.taint |= *own;
	if (fresh.taint && bpf_map_update_elem(&cgroups, &id, &fresh, BPF_NOEXIST)) {
		/* no room: then all that is below its parent is tainted so; the daemon finds it (B90) */
		count(COUNT_LOST_CGROUP);
		set_taint(key.parent, fresh.taint);
	}
	return 0;
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(weir_mkdir, struct cgroup *cg, const char *path)
{
	struct cgroup_ctx cx;
	__u64 at = 0;
	bpf_probe_read_kernel(&at, sizeof(at), &cg);
	set_initial_taint(at); /* before anybody walks it, and remembers */
	walk_cgroup(&cx, cg);
	if (cx.guarded)
		emit_cgroup(&cx, RECORD_MKDIR, cg, 0, ancestor(cg, BPF_CORE_READ(cg, level) - 1));
	return 0;
}

/* A grant that somebody else moves a task into is over before the task arrives. One that is not given yet
 * cannot be given any more: what stands in its place opens nothing, and the daemon does not replace it. */
static __always_inline void intrude(struct cgroup_ctx *from, struct cgroup_ctx *to, struct cgroup *cg,
                                    struct task_struct *target)
{
	struct grant over = {};
	__u64 outer = to->outer;
	if (outer && outer != from->grant && outer != from->outer)
		bpf_map_update_elem(&grants, &outer, &over, BPF_ANY);
	bpf_map_update_elem(&grants, &to->grant, &over, BPF_ANY);
	count(COUNT_INTRUDED);
	emit_cgroup(to, RECORD_INTRUDE, cg, target, 0);
}

/* From now on tasks are asked whether they have left their container. */
static __always_inline void note_escape(void)
{
	__u32 zero = 0;
	__u64 *any = bpf_map_lookup_elem(&escapes, &zero);
	if (any)
		__sync_fetch_and_add(any, 1);
}

static __always_inline void note_left(struct task_struct *task)
{
	struct left key = left_key(task);
	__u32 one = 1;
	bpf_map_update_elem(&all_left, &key, &one, BPF_ANY);
}

/* escape marks the process of a task that left its container; the daemon kills it, and until
 * then it can neither make, connect nor use a socket. */
static __always_inline void escape(struct cgroup_ctx *from, struct cgroup *cg, struct task_struct *target)
{
	struct cgroup_ctx self;
	note_escape();
	note_left(target);
	struct task *t =
	    bpf_task_storage_get(&tasks, target->group_leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t) {
		t->escaped = 1;
		t->from = from->container;
	}
	emit_cgroup(from, RECORD_ESCAPE, cg, target, from->container);
	walk_current(&self);
	if (self.guarded || target->tgid == bpf_get_current_pid_tgid() >> 32)
		bpf_send_signal(SIGKILL);
}

/* A runtime's own program, between its move into the container and its exec of what the container runs, tells
 * the runtime how it gets on: over a Unix socket that it brought along. It has run nothing of the
 * container's. */
#define ARRIVING 30

static __always_inline void arrive(struct task_struct *target)
{
	struct task *t =
	    bpf_task_storage_get(&tasks, target->group_leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t || t->escaped || has_left(target))
		return;
	struct inode *exe = BPF_CORE_READ(target, mm, exe_file, f_inode);
	t->inode = BPF_CORE_READ(exe, i_ino);
	t->device = BPF_CORE_READ(exe, i_sb, s_dev);
	t->argv_hash = 0;
	t->arriving = bpf_ktime_get_boot_ns() / 1000000000 + ARRIVING;
}

/* leaves: a task that is on its way out of a container, or has left it, brings nobody into one. */
static __always_inline int leaves(struct task_struct *task)
{
	struct task *t = bpf_task_storage_get(&tasks, task, 0, 0);
	return t && (t->from || t->escaped);
}

#define PF_EXITING 4
#define MAX_THREADS (1 << 16)

/* A process that is moved, thread by thread. */
struct moved {
	__u64 thread;
	__u64 last;      /* the list ends there */
	__u64 container; /* that it is moved to, or 0 */
	__u64 source;    /* cgroup */
};

static long next_thread(__u32 i, struct moved *m)
{
	struct cgroup_ctx cx;
	struct task_struct *t = (void *)m->thread;
	__u64 cg = (__u64)cgroup_of(t);
	if (!(BPF_CORE_READ(t, flags) & PF_EXITING) && cg != m->source) {
		walk_at(&cx, cg);
		if (!m->source || (cx.container && cx.container != m->container))
			m->source = cg;
		if (cx.container && cx.container != m->container)
			return 1;
	}
	__u64 next = (__u64)BPF_CORE_READ(t, thread_node.next);
	if (!next || next == m->last)
		return 1;
	m->thread = next - bpf_core_field_offset(struct task_struct, thread_node);
	return 0;
}

/* The cgroup that a process leaves which is moved as a whole: of all its threads (B58), one that leaves a
 * container counts. Its first thread may have ended, which stays where it was then, and is not moved (B57);
 * if all have, nobody is: 0. */
static __always_inline __u64 source_cgroup(struct task_struct *leader, bool threadgroup, __u64 container)
{
	struct moved m = {.container = container,
	                  .last = (__u64)BPF_CORE_READ(leader, signal) +
	                          bpf_core_field_offset(struct signal_struct, thread_head)};
	if (!threadgroup)
		return (__u64)cgroup_of(leader);
	m.thread = address_of(leader);
	bpf_loop(MAX_THREADS, next_thread, &m, 0);
	return m.source;
}

SEC("fentry/cgroup_attach_task")
int BPF_PROG(weir_attach_enter, struct cgroup *to_cg, struct task_struct *leader, bool threadgroup)
{
	struct cgroup_ctx from, to, mover;
	struct settings *c = configuration();
	__u32 caller = bpf_get_current_pid_tgid() >> 32;
	walk_current(&mover);
	walk_cgroup(&to, to_cg);
	__u64 at = source_cgroup(leader, threadgroup, to.container);
	if (!at)
		return 0;
	walk_at(&from, at);
	if (to.grant && to.grant != from.grant && (!c || c->daemon != caller))
		intrude(&from, &to, to_cg, leader);
	/* it may send as soon as it is there, long before this call ends; but not for who fetched it (B79) */
	if (to.guarded && !from.container && !mover.container)
		arrive(leader);
	/* it runs where it is put long before this call ends: until it is marked, it is judged by from */
	if (from.container && to.container != from.container)
		note_escape();
	struct task *t = bpf_task_storage_get(&tasks, leader->group_leader, 0,
	                                      from.guarded ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (t && !t->escaped)
		t->from = from.container;
	else if (!t && from.container && to.container != from.container)
		escape(&from, to_cg, leader); /* what is not noted now, nobody knows later (B123) */
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(weir_attach_done, struct cgroup *to_cg, const char *path, struct task_struct *task,
             bool threadgroup)
{
	struct cgroup_ctx to;
	struct task *t = bpf_task_storage_get(&tasks, task->group_leader, 0, 0);
	__u64 from = t ? t->from : 0;
	walk_cgroup(&to, to_cg); /* where a first thread that has ended is not */
	if (from && (!to.guarded || to.container != from)) {
		struct cgroup_ctx left = {.container = from};
		__u64 id = from;
		struct state *s = bpf_map_lookup_elem(&cgroups, &id);
		if (s)
			left.taint = s->taint;
		escape(&left, to_cg, task);
		return 0;
	}
	if (to.guarded)
		emit_cgroup(&to, RECORD_MOVE, to_cg, task, from);
	if (t)
		t->from = 0;
	return 0;
}

/* A child runs what its parent runs, and has left what its parent has left: the container that is returned,
 * or 0. */
static __always_inline __u64 inherit(struct task_struct *parent, struct task_struct *child)
{
	struct task *mine = bpf_task_storage_get(&tasks, parent->group_leader, 0, 0);
	if (has_left(parent))
		note_left(child);
	if (!mine)
		return 0;
	struct task *its = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!its)
		return mine->from;
	its->exec_start = mine->exec_start;
	its->exec_tgid = mine->exec_tgid;
	its->inode = mine->inode;
	its->device = mine->device;
	its->argv_hash = mine->argv_hash;
	its->escaped |= mine->escaped;
	if (mine->arriving)
		its->arriving = mine->arriving;
	if (mine->from)
		its->from = mine->from;
	return mine->from;
}

/* A child of somebody who has left, or is just leaving, a container is killed like its parent, unless it is
 * in there. */
static __always_inline void escape_child(__u64 container, struct cgroup *cg, struct task_struct *child)
{
	struct cgroup_ctx to, left = {.container = container};
	struct task *its = bpf_task_storage_get(&tasks, child, 0, 0);
	walk_cgroup(&to, cg);
	if (to.container != container)
		escape(&left, cg, child);
	else if (its)
		its->escaped = its->from = 0;
}

/* clone3 can put a child into another cgroup. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(weir_fork, struct task_struct *parent, struct task_struct *child)
{
	struct cgroup_ctx from, to;
	int arrives = 0;
	__u64 left = 0;
	struct cgroup *from_cg = cgroup_of(parent), *to_cg = cgroup_of(child);
	if (from_cg != to_cg) {
		struct settings *c = configuration();
		walk_cgroup(&from, from_cg);
		walk_cgroup(&to, to_cg);
		if (to.grant && to.grant != from.grant && (!c || c->daemon != BPF_CORE_READ(parent, tgid)))
			intrude(&from, &to, to_cg, child);
		if (from.guarded && to.container != from.container)
			escape(&from, to_cg, child);
		arrives = to.guarded && !from.container && !leaves(parent) && !leaves(parent->group_leader);
	}
	if (BPF_CORE_READ(child, tgid) == BPF_CORE_READ(child, pid)) /* not a thread */
		left = inherit(parent, child);
	if (arrives)
		arrive(child);
	if (left)
		escape_child(left, to_cg, child);
	return 0;
}

/* What is known of a process hangs on its first thread, in whose place another one comes that executes
 * something. So that one takes with it what the process has left, and where it stands: it may be moved
 * meanwhile (B57, B114). */
SEC("fentry/begin_new_exec")
int BPF_PROG(weir_exec_begins)
{
	struct cgroup_ctx cx = {};
	struct task_struct *t = bpf_get_current_task_btf();
	int first_does = t->pid == t->tgid;
	if (!first_does)
		walk_current(&cx); /* first: who is moved out is noted before he is there */
	barrier();
	struct task *first = bpf_task_storage_get(&tasks, t->group_leader, 0, 0);
	__u64 from = first && first->from ? first->from : cx.container;
	int ends = first ? first->escaped : has_left(t);
	if (!first_does && from) {
		struct task *own = bpf_task_storage_get(&tasks, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (own)
			own->executes = from;
		else
			ends = 1;
	}
	if (ends)
		bpf_send_signal(SIGKILL);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(weir_exec_left, struct task_struct *t)
{
	struct cgroup_ctx cx, from = {};
	struct task *id = bpf_task_storage_get(&tasks, t, 0, 0);
	if (id && id->executes) {
		from.container = id->executes;
		id->executes = 0;
		walk_current(&cx);
		if (cx.container != from.container)
			escape(&from, cgroup_of(t), t);
	}
	if (!has_left(t))
		return 0;
	id = bpf_task_storage_get(&tasks, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (id)
		id->escaped = 1;
	bpf_send_signal(SIGKILL);
	return 0;
}

/* How the daemon writes a state: programs may set taint in it at the same moment, which must not be lost. */
struct state_change {
	__u64 cgroup;
	struct state to;
	enum taint_bit clear;
	__u32 pad;
};

const struct state_change *unused_change __attribute__((unused));

SEC("syscall")
int weir_state(struct state_change *c)
{
	__u64 id = c->cgroup;
	struct state fresh = c->to;
	struct state *s = bpf_map_lookup_elem(&cgroups, &id);
	if (!s) {
		if (!bpf_map_update_elem(&cgroups, &id, &fresh, BPF_NOEXIST))
			return spread();
		s = bpf_map_lookup_elem(&cgroups, &id);
		if (!s)
			return 1;
	}
	s->policy = fresh.policy;
	s->agent = fresh.agent;
	s->grant = fresh.grant;
	__sync_fetch_and_and((__u32 *)&s->flags, fresh.flags | STATE_DOUBT); /* programs set that */
	__sync_fetch_and_or((__u32 *)&s->flags, fresh.flags);
	__sync_fetch_and_or((__u32 *)&s->taint, fresh.taint);
	if (c->clear)
		__sync_fetch_and_and((__u32 *)&s->taint, ~c->clear);
	return spread();
}
