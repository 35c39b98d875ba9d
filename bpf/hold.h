/* Who is stopped until there is a verdict, and the questions to the daemon. */
#ifndef WEIR_HOLD_H
#define WEIR_HOLD_H

#include "policy.h"

#define SIGKILL 9
#define SIGSTOP 19
#define HEARTBEAT_NS 3000000000ULL

/* What waits for a verdict. Pinned: the watcher wakes these when the daemon dies. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct hold_key);
	__type(value, struct hold);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} holds SEC(".maps");

/* Questions have a ring of their own: no flood of other records delays them (B31). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} asks SEC(".maps");

/* Only commands are held: an agent would freeze with all its threads, and a
 * process on a terminal would hand its job to the shell as stopped. Without a
 * daemon that beats, nobody would be there to answer. */
static __always_inline int is_command(struct where *w, struct policy *p)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct settings *c = configuration();
	if (!c || !(p->flags & POLICY_HOLD) || !(p->flags & POLICY_ASK))
		return 0;
	__u64 now = bpf_ktime_get_boot_ns();
	if (now > c->heartbeat && now - c->heartbeat > HEARTBEAT_NS)
		return 0;
	if ((bpf_get_current_pid_tgid() >> 32) == w->agent || BPF_CORE_READ(t, signal, tty))
		return 0;
	struct task_struct *parent = BPF_CORE_READ(t, real_parent);
	return inside(w, cgroup_of(parent));
}

#endif
