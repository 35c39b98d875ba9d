/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is refused without a question. */
#ifndef WEIR_REFUSE_H
#define WEIR_REFUSE_H

#include "decide.h"
#include "hold.h"

enum outcome { PASS, REFUSE, RESTART, UNSETTLED, PASS_LISTED };

/* Says once per process and destination that something was refused without a question. */
__noinline int refuse(struct cgroup_ctx *cx, struct dest *d, __u64 cookie, __u32 reason)
{
	if (!cx || !d)
		return REFUSE;
	struct hold_key key = {.tgid = bpf_get_current_pid_tgid() >> 32, .dest = *d};
	struct refusal now = {.start = started(), .since = bpf_ktime_get_boot_ns()};
	if (is_refused(&key, now.start))
		return REFUSE;
	bpf_map_update_elem(&refusals, &key, &now, BPF_ANY);
	emit(cx, d, RECORD_DENY, reason, cookie);
	return REFUSE;
}

static __always_inline void emit_peer(struct cgroup_ctx *cx, __u32 reason, enum call call, const char *path,
                                      __u32 target)
{
	struct record *r = bpf_ringbuf_reserve(&egress_events, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_RECORD);
		return;
	}
	describe(r, cx, RECORD_DENY, reason);
	describe_current(r);
	r->family = AF_UNIX;
	r->dest.proto = call;
	r->target = target;
	if (path)
		__builtin_memcpy(r->path, path, sizeof(r->path));
	bpf_ringbuf_submit(r, 0);
}

static __always_inline int refuse_asking(struct cgroup_ctx *cx, enum call call, __u32 option)
{
	count(COUNT_DENIED_SOCKET);
	emit_peer(cx, REASON_KERNEL, call, 0, option);
	return 0;
}

/* What the kernel sends for nobody's socket, no packet check sees: it is refused where it
 * is asked for (B47). option: of the socket, with CALL_OPTION. */
__noinline int may_ask_kernel(enum call call, __u32 option)
{
	struct cgroup_ctx cx;
	judged_ctx(&cx);
	return is_unrestricted(&cx) || refuse_asking(&cx, call, option);
}

#endif
