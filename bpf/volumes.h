/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Directories that guarded containers share, and what those carry: see docs/decisions/0021. */
#ifndef WEIR_VOLUMES_H
#define WEIR_VOLUMES_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "types.h"

#define MAX_VOLUMES 64
#define TAINT_BITS 2

#define VOLUME_FILTER_WORDS 8

/* What the daemon says; nearly every directory is passed over by it. */
struct volume_filter {
	__u64 listed;                    /* one bit for each volume */
	__u64 bits[VOLUME_FILTER_WORDS]; /* of a hash of each volume's inodes */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct volume_filter);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} volume_filters SEC(".maps");

/* For each bit of taint, in the order of enum taint_bit, which volumes carry it. */
struct volume_bits {
	__u64 carried[TAINT_BITS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct volume_bits);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} volume_taint SEC(".maps");

/* What a container has ever opened in volumes: a descriptor or a mapping may have stayed. */
struct volume_use {
	__u64 reads;
	__u64 writes;
	__u64 above; /* its guarded parent, whose taint is its own, too; 0: none */
};

/* Never an LRU: who is forgotten takes and gives nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64); /* the container's cgroup */
	__type(value, struct volume_use);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} volume_uses SEC(".maps");

static __always_inline struct volume_bits *volumes_carry(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&volume_taint, &zero);
}

static __always_inline struct volume_filter *volumes_listed(void)
{
	__u32 zero = 0;
	struct volume_filter *f = bpf_map_lookup_elem(&volume_filters, &zero);
	return f && f->listed ? f : 0;
}

static __always_inline __u64 now_of(__u64 *value)
{
	return *(volatile __u64 *)value;
}

/* The taint of the volumes that a container has read from. */
static __always_inline __u32 carried_to(__u64 container)
{
	struct volume_bits *v = volumes_carry();
	if (!v)
		return 0;
	__u64 corruption = now_of(&v->carried[0]), secret = now_of(&v->carried[1]);
	if (!(corruption | secret))
		return 0;
	struct volume_use *u = bpf_map_lookup_elem(&volume_uses, &container);
	if (!u)
		return 0;
	__u64 reads = now_of(&u->reads);
	return (reads & corruption ? TAINT_CORRUPTION : 0) | (reads & secret ? TAINT_SECRET : 0);
}

#endif
