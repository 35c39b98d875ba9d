/* Who hears what is sent on a Unix socket: its cgroup tells who made it, not who has it. */
#ifndef WEIR_ENDS_H
#define WEIR_ENDS_H

#include "walk.h"

#define TCP_CLOSE 7

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64); /* cookie */
	__type(value, enum unix_end);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} outside_unix SEC(".maps");

static __always_inline enum unix_end end_of(struct sock *sk)
{
	__u64 cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	enum unix_end *end = cookie ? bpf_map_lookup_elem(&outside_unix, &cookie) : 0;
	return end ? *end : 0;
}

/* heard_inside: who hears sk, which cx's container made: what connects to it, or is sent to it, stays there.
 */
static __always_inline int heard_inside(struct cgroup_ctx *cx, struct sock *sk)
{
	enum unix_end end = end_of(sk);
	return end != UNIX_OUTSIDE && (end == UNIX_OWN || !(cx->guarded & GUARDED_LATE));
}

/* flows_inside: the same of what is sent on a connected socket. Of a connection that is accepted only the
 * other end was seen to be made. */
static __always_inline int flows_inside(struct cgroup_ctx *cx, struct sock *sk)
{
	struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
	enum unix_end near = end_of(sk), far = peer ? end_of(peer) : 0;
	if (near == UNIX_OUTSIDE || far == UNIX_OUTSIDE)
		return 0;
	if (!(cx->guarded & GUARDED_LATE) || near == UNIX_OWN || far == UNIX_OWN)
		return 1;
	/* nobody hears it; the kernel says so */
	return peer && BPF_CORE_READ(peer, __sk_common.skc_state) == TCP_CLOSE;
}

#endif
