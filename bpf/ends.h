/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who hears what is sent on a Unix socket: its cgroup tells who made it, not who has it. */
#ifndef WEIR_ENDS_H
#define WEIR_ENDS_H

#include "policy.h"

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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct unix_peer);
	__type(value, struct unix_listed);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} unix_peers SEC(".maps");

static __always_inline void read_path(char *path, struct sock *sk)
{
	struct unix_address *address = BPF_CORE_READ((struct unix_sock *)sk, addr);
	if (!address)
		return;
	__u32 length = BPF_CORE_READ(address, len);
	if (length < 3 || length > UNIX_PATH + 2)
		return;
	length -= 2;
	const char *name = (const char *)address + bpf_core_field_offset(address->name) + 2;
	int cut = length > UNIX_PATH - 1;
	if (cut)
		length = UNIX_PATH - 1;
	bpf_probe_read_kernel(path, length, name);
	if (!path[0]) /* a name with zeros behind it is another one, and the key does not show them (B110) */
		path[0] = cut || (length > 1 && !path[length - 1]) ? '?' : '@';
	else if (path[0] == '@')
		path[0] = '?'; /* a file of that name is not the abstract socket */
}

struct upid___listens {
	int nr;
} __attribute__((preserve_access_index));

struct pid___listens {
	struct upid___listens numbers[1];
} __attribute__((preserve_access_index));

struct sock___listens {
	struct pid___listens *sk_peer_pid; /* of who called listen, as the first pid namespace has it */
} __attribute__((preserve_access_index));

/* Two directories of one device have one number where btrfs has subvolumes, but were not made at once (B135).
 */
static __always_inline __u64 directory_of(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_ino) ^ (__u64)BPF_CORE_READ(inode, i_generation) << 32;
}

/* A name is what its socket was bound to, below whatever root its binder had. Its last part is the name of
 * the file, so the directory tells where that is; nobody has an abstract name twice. Says how it is listed.
 */
static __always_inline int is_listed(struct unix_peer *key, struct sock *sk, int own_only)
{
	struct unix_listed *l = bpf_map_lookup_elem(&unix_peers, key);
	struct settings *c = configuration();
	if (!l)
		return 0;
	if (l->how == LISTED_OWN)
		return c && c->daemon &&
		               (__u32)BPF_CORE_READ((struct sock___listens *)sk, sk_peer_pid,
		                                    numbers[0].nr) == c->daemon
		           ? LISTED_OWN
		           : 0;
	if (own_only)
		return 0;
	if (key->path[0] == '@')
		return LISTED_PEER;
	struct inode *directory = BPF_CORE_READ((struct unix_sock *)sk, path.dentry, d_parent, d_inode);
	return l->directory && directory_of(directory) == l->directory &&
	               BPF_CORE_READ(directory, i_sb, s_dev) == l->device
	           ? LISTED_PEER
	           : 0;
}

/* still_listed: cx's policy lists what the other end of a connection was bound to when it came about (B97).
 * at: its address, as in walk_at. That end was made while cx's container connected, so it has that one's
 * cgroup. */
__noinline int still_listed(struct cgroup_ctx *cx, __u64 at)
{
	struct unix_peer key = {};
	if (!cx)
		return 0;
	struct policy *p = policy_of(cx);
	if (!p)
		return 0;
	read_path(key.path, (struct sock *)at);
	key.policy = cx->policy;
	key.generation = p->generation;
	return is_listed(&key, (struct sock *)at, p->mode == MODE_SEAL);
}

/* flows_inside: the same of what is sent on a connected socket. Of a connection that is accepted only the
 * other end was seen to be made. */
static __always_inline int flows_inside(struct cgroup_ctx *cx, struct sock *sk)
{
	struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
	enum unix_end near = end_of(sk), far = peer ? end_of(peer) : 0;
	if (near == UNIX_OUTSIDE || far == UNIX_OUTSIDE)
		return 0;
	if (near == UNIX_LISTED)
		return !peer || still_listed(cx, address_of(peer));
	if (!(cx->guarded & GUARDED_LATE) || near == UNIX_OWN || far == UNIX_OWN)
		return 1;
	/* nobody hears it; the kernel says so */
	return peer && BPF_CORE_READ(peer, __sk_common.skc_state) == TCP_CLOSE;
}

#endif
