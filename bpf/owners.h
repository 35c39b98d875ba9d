/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a container has made that others may use, too. */
#ifndef WEIR_OWNERS_H
#define WEIR_OWNERS_H

#include "walk.h"

struct user_namespace___first {
	struct user_namespace___first *parent; /* 0: it is the machine's */
} __attribute__((preserve_access_index));

#define MAX_OWNERS 16384

/* Which container has made an object that processes share by number or name, by the object's address: keys,
 * user namespaces, and System V's memory, messages and semaphores. Whoever makes one is looked at, so that an
 * address that is used again stands for nobody else. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_OWNERS);
	__type(key, __u64);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} owners SEC(".maps");

/* Somebody outside has used an object of System V while its container was clean, and may sleep on it since:
 * whatever is done to it wakes him (B118). */
#define OWNER_SHARED (1ULL << 63)

/* Its container has begun to set all semaphores, and what to may be read later, under taint: so nobody
 * outside uses them (B121). */
#define OWNER_SETS (1ULL << 62)

/* is_own: cx's container has made an object, and nobody else has used it. */
static __always_inline int is_own(struct cgroup_ctx *cx, __u64 *owner)
{
	return owner && (*owner & ~OWNER_SETS) == cx->container;
}

static __always_inline int owns(struct cgroup_ctx *cx, __u64 object)
{
	return is_own(cx, bpf_map_lookup_elem(&owners, &object));
}

#endif
