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

#endif
