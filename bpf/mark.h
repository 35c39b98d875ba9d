/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which way a socket's packets go, and what they may go by. */
#ifndef WEIR_MARK_H
#define WEIR_MARK_H

#include "walk.h"

/* Read by the packet check: a mark lives as long as its socket, longer than its cookie's entry. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mark);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} marks SEC(".maps");

/* keep_mark leaves what the socket's own messages were noted for. */
static __always_inline void keep_mark(struct mark *kept, const struct mark *m)
{
	kept->told = (kept->told & MARK_ASTRAY) | m->told;
	kept->grant = m->grant;
	kept->dest = m->dest;
}

enum sock_flags___way {
	SOCK_LOCALROUTE___way = 13,
};

struct sock_common___flags {
	long unsigned int skc_flags;
} __attribute__((preserve_access_index));

struct sock___flags {
	struct sock_common___flags __sk_common;
} __attribute__((preserve_access_index));

/* passes_gateways: only who is on the link is asked, whatever gateway leads there (B111). */
static __always_inline int passes_gateways(struct sock *sk)
{
	int bit = bpf_core_enum_value_exists(enum sock_flags___way, SOCK_LOCALROUTE___way)
	              ? bpf_core_enum_value(enum sock_flags___way, SOCK_LOCALROUTE___way)
	              : SOCK_LOCALROUTE___way; /* as it is on 6.1 and 6.12 */
	return BPF_CORE_READ((struct sock___flags *)sk, __sk_common.skc_flags) >> bit & 1;
}

#endif
