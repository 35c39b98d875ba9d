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
	struct hold *old = bpf_map_lookup_elem(&held, &key);
	__u64 start = started();
	if (old && old->start == start)
		return REFUSE;
	struct hold hold = {.start = start, .since = bpf_ktime_get_boot_ns(), .verdict = HOLD_DENIED};
	bpf_map_update_elem(&held, &key, &hold, BPF_ANY);
	emit(cx, d, RECORD_DENY, reason, cookie);
	return REFUSE;
}

#endif
