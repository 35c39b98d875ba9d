/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files as the kernel has them: by the names that lead to them, and by inode. */
#ifndef WEIR_PATH_H
#define WEIR_PATH_H

#include "walk.h"

#define MAX_STEPS 64
#define MAX_ALIASES 8
#define FMODE_READ 1
#define FMODE_WRITE 2
#define S_IFMT 0170000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define SB_INTERNAL ((1UL << 22) | (1UL << 31)) /* SB_KERNMOUNT, SB_NOUSER: memfd and the like */
#define RENAME_EXCHANGE 2

/* 1: it has no path, as what is opened by its handle. */
static __always_inline int detached(struct dentry *dentry)
{
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
	struct super_block *sb = BPF_CORE_READ(dentry, d_inode, i_sb);
	return parent == dentry && dentry != BPF_CORE_READ(sb, s_root) &&
	       !(BPF_CORE_READ(sb, s_flags) & SB_INTERNAL);
}

/* The mount that a file was opened by, or that a path is of. */
static __always_inline struct mount *mount_at(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

struct inode___alias {
	struct {
		struct hlist_node *first;
	} i_dentry;
} __attribute__((preserve_access_index));

struct dentry___alias {
	union {
		struct hlist_node d_alias;
	} d_u;
} __attribute__((preserve_access_index));

static __always_inline struct hlist_node *first_alias(struct inode *inode)
{
	return BPF_CORE_READ((struct inode___alias *)inode, i_dentry.first);
}

static __always_inline struct dentry *alias(struct hlist_node *at)
{
	return (void *)at - bpf_core_field_offset(struct dentry___alias, d_u.d_alias);
}

#endif
