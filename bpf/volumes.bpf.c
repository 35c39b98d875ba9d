/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Volumes carry taint (B34): who writes into one gives it his own, who reads from one takes its, before the
 * call returns. A container counts as one that writes, or reads, from its first such call on: what it has
 * kept open needs no further call. */
#include "path.h"
#include "taint.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct volume_key {
	__u64 inode;
	__u32 device;
	__u32 generation; /* a number is used again once its directory has been removed */
};

/* The directories of volumes, and the roots of what is mounted below them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct volume_key);
	__type(value, __u32); /* which volume */
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} volumes SEC(".maps");

/* Who was the first of a container to take taint from volumes, or to give them some. */
struct volume_record {
	__u64 time;
	__u64 container;
	__u64 start;
	__u64 volumes;
	__u32 tgid;
	__u32 taint;
	__u32 writes;
	__u32 pad;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} volume_records SEC(".maps");

const struct volume_record *unused_record __attribute__((unused));

#define READS 1
#define WRITES 2

/* As volumes.filterBit. */
static __always_inline __u64 filtered(struct volume_filter *f, __u64 inode)
{
	__u32 at = inode * 0x9e3779b97f4a7c15ULL >> 55;
	return f->bits[at >> 6 & (VOLUME_FILTER_WORDS - 1)] >> (at & 63) & 1;
}

struct steps {
	struct volume_filter *filter;
	__u64 dentry;
	__u64 mount; /* 0: look at the file system alone */
	__u64 found;
	__u32 ended;
};

/* One step of volumes_above: 1 if it was the last. A callback is verified once, not for each step. */
static long look_above(__u64 step, struct steps *c)
{
	struct dentry *dentry = (struct dentry *)c->dentry;
	struct mount *mount = (struct mount *)c->mount;
	struct inode *inode = BPF_CORE_READ(dentry, d_inode);
	struct volume_key key = {.inode = BPF_CORE_READ(inode, i_ino)};
	if (inode && filtered(c->filter, key.inode)) {
		key.device = BPF_CORE_READ(inode, i_sb, s_dev);
		key.generation = BPF_CORE_READ(inode, i_generation);
		__u32 *index = bpf_map_lookup_elem(&volumes, &key);
		if (index)
			c->found |= 1ULL << (*index & (MAX_VOLUMES - 1));
	}
	c->dentry = (__u64)BPF_CORE_READ(dentry, d_parent);
	if (c->dentry != (__u64)dentry)
		return 0;
	if (detached(dentry))
		return 1;
	c->mount = mount ? (__u64)BPF_CORE_READ(mount, mnt_parent) : 0;
	c->ended = c->mount == (__u64)mount;
	c->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint); /* what is mounted in a volume is in it */
	return c->ended;
}

/* volumes_above finds the volumes that a dentry is in. Deeper than is looked, or with no path: it may be in
 * any. */
__noinline int volumes_above(__u64 at, __u64 mount, __u64 *found)
{
	struct steps c = {.filter = volumes_listed(), .dentry = at, .mount = mount};
	if (!found || !c.filter)
		return 0;
	bpf_loop(2 * MAX_STEPS, look_above, &c, 0);
	*found |= c.found | (c.ended ? 0 : c.filter->listed);
	return 0;
}

static __always_inline void tell(__u64 container, __u64 mask, __u32 taint, __u32 writes)
{
	struct volume_record *r = bpf_ringbuf_reserve(&volume_records, sizeof(*r), 0);
	if (!r)
		return; /* the daemon finds it itself */
	__builtin_memset(r, 0, sizeof(*r));
	r->time = bpf_ktime_get_boot_ns();
	r->container = container;
	r->start = started();
	r->volumes = mask;
	r->tgid = bpf_get_current_pid_tgid() >> 32;
	r->taint = taint;
	r->writes = writes;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
}

/* The bits of taint that one of these volumes carries, or that not all of them do. */
static __always_inline __u32 taint_of(__u64 mask, int lacking)
{
	struct volume_bits *v = volumes_carry();
	__u64 flip = lacking ? ~0ULL : 0;
	if (!v)
		return 0;
	return (mask & (now_of(&v->carried[0]) ^ flip) ? TAINT_CORRUPTION : 0) |
	       (mask & (now_of(&v->carried[1]) ^ flip) ? TAINT_SECRET : 0);
}

/* use notes what a container does with volumes, and has taint in force on both sides when it returns; 0:
 * there is no room for that. at: the address of the cgroup of a task that has something open; 0: the current
 * task does it. */
__noinline int use(struct cgroup_ctx *cx, __u64 mask, __u32 how, __u64 at)
{
	if (!cx || !mask)
		return 1;
	__u64 id = cx->container ? cx->container : cx->cgroup;
	struct cgroup *cg = at ? (struct cgroup *)at : cgroup_of(bpf_get_current_task_btf());
	struct volume_use *u = bpf_map_lookup_elem(&volume_uses, &id);
	if (!u) {
		struct volume_use fresh = {};
		if (cx->container && cx->level)
			fresh.above = ancestor(cg, cx->level - 1);
		bpf_map_update_elem(&volume_uses, &id, &fresh, BPF_NOEXIST);
		u = bpf_map_lookup_elem(&volume_uses, &id);
	}
	if (!u)
		return 0;
	if (how & READS)
		__sync_fetch_and_or(&u->reads, mask);
	if (how & WRITES)
		__sync_fetch_and_or(&u->writes, mask);
	__u32 taken = how & READS ? taint_of(mask, 0) & ~cx->taint : 0;
	__u32 given = how & WRITES ? taint_of(mask, 1) & (cx->taint | taken | own_taint(id, u)) : 0;
	struct volume_bits *v = volumes_carry();
	for (int bit = 0; v && bit < TAINT_BITS; bit++)
		if (given >> bit & 1)
			__sync_fetch_and_or(&v->carried[bit], mask);
	if (!(taken | given))
		return 1;
	spread();
	forget();
	if (!at && taken)
		tell(id, mask, taken, 0);
	if (!at && given)
		tell(id, mask, given, 1);
	return 1;
}

/* known: the container does so with all of them already, and they carry what the task is tainted with, be it
 * by a cgroup that is neither the container nor its parent (B136). */
static __always_inline int known(struct cgroup_ctx *cx, __u64 mask, __u32 how)
{
	__u64 id = cx->container ? cx->container : cx->cgroup;
	struct volume_use *u = bpf_map_lookup_elem(&volume_uses, &id);
	return u && (!(how & READS) || !(mask & ~now_of(&u->reads))) &&
	       (!(how & WRITES) || (!(mask & ~now_of(&u->writes)) && !(taint_of(mask, 1) & cx->taint)));
}

/* What is used. */
struct used {
	__u64 dentry;
	__u64 mount; /* 0: not known */
	__u64 first; /* an alias of the file's inode, whose path counts too; 0: none */
	__u32 how;
	__u32 pad;
};

/* uses is use of what leads to a dentry, and to the file at first: until 6.8, overlayfs opens the file below
 * under its own path. */
__noinline int uses(struct cgroup_ctx *cx, struct used *what, __u64 cgroup)
{
	struct volume_filter *f = volumes_listed();
	__u64 mask = 0;
	if (!cx || !what || !f || !what->how || !cx->guarded || known(cx, f->listed, what->how))
		return 1;
	volumes_above(what->dentry, what->mount, &mask);
	struct hlist_node *at = (struct hlist_node *)what->first;
	for (int n = 0; n < MAX_ALIASES && at; n++) {
		volumes_above(address_of(alias(at)), 0, &mask);
		at = BPF_CORE_READ(at, next);
	}
	if (at)
		mask |= f->listed;
	return known(cx, mask, what->how) || use(cx, mask, what->how, cgroup);
}

static __always_inline int touch_at(struct dentry *dentry, struct mount *mount, __u32 how)
{
	struct used what = {.dentry = address_of(dentry), .mount = address_of(mount), .how = how};
	struct cgroup_ctx cx;
	if (outside())
		return 1;
	walk_current(&cx);
	return uses(&cx, &what, 0);
}

static __always_inline int touch(struct dentry *dentry, __u32 how)
{
	return touch_at(dentry, 0, how);
}

static __always_inline int touch_path(struct path *path, __u32 how)
{
	return touch_at(BPF_CORE_READ(path, dentry), mount_at(BPF_CORE_READ(path, mnt)), how);
}

static __always_inline int uses_file(struct cgroup_ctx *cx, struct file *file, __u64 cgroup)
{
	__u32 mode = BPF_CORE_READ(file, f_mode);
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct used what = {.dentry = address_of(dentry),
	                    .mount = address_of(mount_at(BPF_CORE_READ(file, f_path.mnt)))};
	/* with neither, what the kernel keeps of it can be asked for */
	what.how =
	    (mode & FMODE_WRITE ? WRITES : 0) | (mode & FMODE_READ || !(mode & FMODE_WRITE) ? READS : 0);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFCHR)
		return 1;
	what.first = BPF_CORE_READ(dentry, d_inode) == inode ? 0 : address_of(first_alias(inode));
	return uses(cx, &what, cgroup);
}

#define REFUSE_UNLESS(done)                                                                                  \
	do {                                                                                                 \
		if (done)                                                                                    \
			ANSWER(0);                                                                           \
		ANSWER(-EPERM);                                                                              \
	} while (0)

static __always_inline int touch_file(struct file *file)
{
	struct cgroup_ctx cx;
	if (outside())
		return 1;
	walk_current(&cx);
	return uses_file(&cx, file, 0);
}

SEC("fmod_ret/security_file_open")
int BPF_PROG(weir_volume_open, struct file *file)
{
	REFUSE_UNLESS(touch_file(file));
}

SEC("fmod_ret/security_file_receive")
int BPF_PROG(weir_volume_file, struct file *file)
{
	REFUSE_UNLESS(touch_file(file));
}

/* Names carry data, too. */
SEC("fmod_ret/security_inode_create")
int BPF_PROG(weir_volume_create, struct inode *dir, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_mkdir")
int BPF_PROG(weir_volume_mkdir, struct inode *dir, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_mknod")
int BPF_PROG(weir_volume_mknod, struct inode *dir, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_symlink")
int BPF_PROG(weir_volume_symlink, struct inode *dir, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_unlink")
int BPF_PROG(weir_volume_unlink, struct inode *dir, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_rmdir")
int BPF_PROG(weir_volume_rmdir, struct inode *dir, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_link")
int BPF_PROG(weir_volume_link, struct dentry *from, struct inode *dir, struct dentry *to)
{
	REFUSE_UNLESS(touch(from, READS | WRITES) && touch(to, WRITES));
}

SEC("fmod_ret/security_inode_rename")
int BPF_PROG(weir_volume_rename, struct inode *dir, struct dentry *from, struct inode *to_dir,
             struct dentry *to)
{
	REFUSE_UNLESS(touch(from, READS | WRITES) && touch(to, READS | WRITES));
}

/* The first argument is the user namespace, later the mount's map of ids. */
SEC("fmod_ret/security_inode_setattr")
int BPF_PROG(weir_volume_setattr, void *ids, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_setxattr")
int BPF_PROG(weir_volume_setxattr, void *ids, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_removexattr")
int BPF_PROG(weir_volume_removexattr, void *ids, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, WRITES));
}

SEC("fmod_ret/security_inode_getxattr")
int BPF_PROG(weir_volume_getxattr, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, READS));
}

SEC("fmod_ret/security_inode_listxattr")
int BPF_PROG(weir_volume_listxattr, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, READS));
}

SEC("fmod_ret/security_inode_readlink")
int BPF_PROG(weir_volume_readlink, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, READS));
}

/* Who follows a link learns its text by where that leads. */
SEC("fmod_ret/security_inode_follow_link")
int BPF_PROG(weir_volume_follow, struct dentry *dentry)
{
	REFUSE_UNLESS(touch(dentry, READS));
}

/* A watch tells names. */
SEC("fmod_ret/security_path_notify")
int BPF_PROG(weir_volume_watch, struct path *path)
{
	REFUSE_UNLESS(touch_path(path, READS));
}

/* What is mounted has names and contents of whoever mounts it. */
SEC("fmod_ret/security_sb_mount")
int BPF_PROG(weir_volume_mount, const char *device, struct path *path)
{
	REFUSE_UNLESS(touch_path(path, READS | WRITES));
}

SEC("fmod_ret/security_move_mount")
int BPF_PROG(weir_volume_move_mount, struct path *from, struct path *path)
{
	REFUSE_UNLESS(touch_path(path, READS | WRITES));
}

/* What was opened, or came with a process, before anybody looked. */
static __always_inline void held(struct task_struct *t, struct file *file)
{
	struct cgroup_ctx cx;
	if (!t || !file)
		return;
	struct cgroup *cg = cgroup_of(t);
	walk_cgroup(&cx, cg);
	uses_file(&cx, file, address_of(cg));
}

SEC("iter/task_file")
int weir_volumes_open(struct bpf_iter__task_file *ctx)
{
	held(ctx->task, ctx->file);
	return 0;
}

SEC("iter/task_vma")
int weir_volumes_mapped(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	if (vma)
		held(ctx->task, vma->vm_file);
	return 0;
}

/* How the daemon changes what programs change at the same moment. */
struct volume_change {
	__u64 volumes;
	__u64 container; /* of which uses are forgotten; 0: of none */
	__u32 set;
	__u32 clear; /* and what was opened of these volumes is forgotten */
	__u32 pad[2];
};

const struct volume_change *unused_change __attribute__((unused));

static long forget_use(void *map, __u64 *id, struct volume_use *u, __u64 *mask)
{
	__sync_fetch_and_and(&u->reads, ~*mask);
	__sync_fetch_and_and(&u->writes, ~*mask);
	return 0;
}

SEC("syscall")
int weir_volume_change(struct volume_change *c)
{
	__u64 mask = c->volumes, id = c->container;
	struct volume_bits *v = volumes_carry();
	struct volume_use *u = bpf_map_lookup_elem(&volume_uses, &id);
	if (!v)
		return 1;
	if (u && id) {
		__sync_fetch_and_and(&u->reads, 0);
		__sync_fetch_and_and(&u->writes, 0);
	}
	if (c->clear)
		bpf_for_each_map_elem(&volume_uses, forget_use, &mask, 0);
	for (int bit = 0; bit < TAINT_BITS; bit++) {
		if (c->clear >> bit & 1)
			__sync_fetch_and_and(&v->carried[bit], ~mask);
		if (c->set >> bit & 1)
			__sync_fetch_and_or(&v->carried[bit], mask);
	}
	return spread();
}
