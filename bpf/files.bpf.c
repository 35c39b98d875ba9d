/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who opens a secret file is tainted before the open returns (G2). Files are
 * known by inode, so that no other name, mount or namespace hides one; a
 * directory's entry covers what is made in it later. */
#include "owners.h"
#include "path.h"
#include "policy.h"
#include "taint.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_NAMES 32
#define FILTER_WORDS 512
#define PLACE_WORDS 64
#define PART 32
#define S_IFLNK 0120000
#define PROC_SUPER_MAGIC 0x9fa0
#define SECURITYFS_MAGIC 0x73636673
#define SELINUX_MAGIC 0xf97cff8c
#define DEBUGFS_MAGIC 0x64626720
#define TRACEFS_MAGIC 0x74726163
#define AAFS_MAGIC 0x5a3c69f0

/* What nearly every open is done with: nothing in here matches, nothing is listed. */
struct secret_filter {
	__u32 on;
	__u32 root_device; /* of the host's root: no mount above it */
	__u64 root_inode;
	__u64 lengths[4];          /* of names that count anywhere */
	__u64 starred[4];          /* of names with a star that count in some directory */
	__u64 bits[FILTER_WORDS];  /* a hash of each inode that is secret, or all below it */
	__u64 places[PLACE_WORDS]; /* of each directory and length of a name that counts there; 0: with a star
	                            */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct secret_filter);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} secret_filters SEC(".maps");

struct secret_list {
	__u32 generation; /* of its entries in secret_nodes and secret_names; 0: there is no list */
	__u32 anywhere;   /* names that count in every directory */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_POLICIES);
	__type(key, __u32);
	__type(value, struct secret_list);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} secret_lists SEC(".maps");

struct secret_key {
	__u32 policy;
	__u32 generation;
	__u64 inode;
	__u32 device;
	__u32 pad;
};

struct secret_node {
	__u32 self;  /* the file itself is secret */
	__u32 below; /* all that is below is */
	__u32 names; /* names that count in this directory */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct secret_key);
	__type(value, struct secret_node);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} secret_nodes SEC(".maps");

struct secret_name_key {
	__u32 policy;
	__u32 generation;
	__u32 index;
};

/* HEAD*TAIL, or, when exact, a name of that length whose two ends these are. */
struct secret_name {
	__u32 exact;
	__u32 length; /* at least */
	__u64 head[4], head_mask[4];
	__u64 tail[4], tail_mask[4]; /* aligned at the end */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * MAX_POLICIES * MAX_NAMES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct secret_name_key);
	__type(value, struct secret_name);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} secret_names SEC(".maps");

enum secret_how {
	SECRET_NONE = 0,
	SECRET_OPENED = 1,
	SECRET_RECEIVED = 2, /* a descriptor that somebody handed over */
	SECRET_LINKED = 3,   /* given another name, under which it would not be known */
	SECRET_HANDLE = 4,   /* opened by handle: its path is not known */
	SECRET_DEEP = 5,     /* too deep for its path to be known */
	SECRET_FOLLOWED = 6, /* a link */
	SECRET_REMOVED = 7,  /* a link that leads to what is listed */
};

#define SHOWN 8
#define SHOWN_NAME 48

struct secret_open {
	__u64 time;
	__u64 container;
	__u64 start;
	__u64 inode;
	__u32 device;
	__u32 tgid;
	__u32 uid;
	enum secret_how how;
	__u32 shown;
	__u32 cut; /* there are more directories above */
	char comm[16];
	char name[SHOWN][SHOWN_NAME]; /* the file first */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 17);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} secret_opens SEC(".maps");

/* For the daemon: what the kernel calls the inode of one of its descriptors. stat tells other numbers on
 * overlayfs and btrfs. */
struct inode_id {
	__u64 inode;
	__u32 device;
	__u32 directory;
	__u32 generation; /* tells it from others with that number */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct inode_id);
} inode_ids SEC(".maps");

/* Rings have no value type: this names theirs for bpf2go. */
const struct secret_open *unused_open __attribute__((unused));

static __always_inline __u64 filtered(struct secret_filter *f, __u64 inode)
{
	__u32 at = inode * 0x9e3779b97f4a7c15ULL >> 49;
	return f->bits[at >> 6 & (FILTER_WORDS - 1)] >> (at & 63) & 1;
}

/* As files.place. */
static __always_inline __u64 has_names(struct secret_filter *f, __u64 inode, __u64 length)
{
	__u32 at = (inode ^ length << 48) * 0x9e3779b97f4a7c15ULL >> 52;
	return f->places[at >> 6 & (PLACE_WORDS - 1)] >> (at & 63) & 1;
}

static __always_inline __u64 has_length(const __u64 *lengths, __u32 length)
{
	return lengths[length >> 6 & 3] >> (length & 63) & 1;
}

struct dentry___flags {
	unsigned int d_flags;
} __attribute__((preserve_access_index));

#define DCACHE_OP_HASH 1
#define DCACHE_OP_COMPARE 2

/* Its file system compares names in a way of its own, so that a file has several (B134). */
#define OWN_NAMES (DCACHE_OP_HASH | DCACHE_OP_COMPARE)

struct match {
	__u64 dentry;
	__u64 mount; /* 0: look at the file system alone */
	__u64 leaf;
	__u32 policy;
	__u32 generation;
	__u32 names;
	__u32 position; /* 0: the file */
	__u32 moves;    /* it is not opened, but gets another name: a directory counts too */
	__u32 found;
	__u32 ended;
	__u32 pad;
};

static long match_step(__u32 i, struct match *m)
{
	struct dentry *dentry = (struct dentry *)m->dentry;
	struct mount *mount = (struct mount *)m->mount;
	struct secret_key key = {.policy = m->policy, .generation = m->generation};
	key.inode = BPF_CORE_READ(dentry, d_inode, i_ino);
	key.device = BPF_CORE_READ(dentry, d_inode, i_sb, s_dev);
	struct secret_node *n = bpf_map_lookup_elem(&secret_nodes, &key);
	if (n) {
		if (m->position ? n->below : m->moves || n->self) {
			m->found = 1;
			return 1;
		}
		if (m->position == 1)
			m->names |= n->names;
	}
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
	if (mount && dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);
		m->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		m->mount = (__u64)above;
		m->ended = above == mount;
		if (!m->position)
			m->leaf = m->dentry; /* a file that is mounted has the name of where */
		return m->ended;
	}
	if (parent == dentry) {
		m->ended = 1;
		return 1;
	}
	m->dentry = (__u64)parent;
	m->position++;
	return 0;
}

/* Both ends of a file's name, and whose names it is held against. */
struct ends {
	__u64 head[5];
	__u64 tail[4];
	__u64 cases; /* bits that do not count */
	__u32 length;
	__u32 policy;
	__u32 generation;
	__u32 pad;
};

#define EACH_BYTE(c) (0x0101010101010101ULL * (c))

/* is_alias: a name that such a file system may take for another: FAT's short ones (~) and what ends in a dot,
 * and letters beyond ASCII. */
__noinline int is_alias(__u64 at)
{
	struct dentry *dentry = (struct dentry *)at;
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	__u32 length = BPF_CORE_READ(dentry, d_name.len);
	unsigned char last = 0;
	if (bpf_probe_read_kernel(&last, 1, name + length - 1) || last == '.')
		return 1;
	for (__u32 i = 0; i < 256 && i < length; i += 8) {
		__u64 word = 0;
		if (bpf_probe_read_kernel(&word, sizeof(word), name + i))
			return 1;
		if (length - i < 8)
			word &= (1ULL << 8 * (length - i)) - 1;
		__u64 tilde = word ^ EACH_BYTE('~');
		if ((word | ((tilde - EACH_BYTE(1)) & ~tilde)) & EACH_BYTE(0x80))
			return 1;
	}
	return 0;
}

__noinline int pattern_matches(const struct ends *e, __u32 index)
{
	if (!e)
		return 0;
	struct secret_name_key key = {.policy = e->policy, .generation = e->generation, .index = index};
	struct secret_name *n = bpf_map_lookup_elem(&secret_names, &key);
	if (!n || e->length < n->length || (n->exact && e->length != n->length))
		return 0;
	__u64 off = 0;
	for (int w = 0; w < 4; w++)
		off |= ((e->head[w] ^ n->head[w]) & n->head_mask[w]) |
		       ((e->tail[w] ^ n->tail[w]) & n->tail_mask[w]);
	return !(off & ~e->cases);
}

/* name_matches says whether a dentry has one of the names. */
__noinline int name_matches(__u64 at, __u32 names, __u32 policy, __u32 generation)
{
	struct dentry *dentry = (struct dentry *)at;
	struct ends e = {.policy = policy, .generation = generation};
	if (BPF_CORE_READ((struct dentry___flags *)dentry, d_flags) & OWN_NAMES) {
		if (is_alias(at))
			return 1;
		e.cases = EACH_BYTE('a' ^ 'A');
	}
	e.length = BPF_CORE_READ(dentry, d_name.len);
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	bpf_probe_read_kernel_str(e.head, sizeof(e.head), name);
	/* what comes before a short name is masked out */
	bpf_probe_read_kernel(e.tail, sizeof(e.tail), name + e.length - PART);
	for (int i = 0; i < MAX_NAMES; i++)
		if ((names >> i & 1) && pattern_matches(&e, i))
			return 1;
	return 0;
}

/* path_is_secret walks up to the root, by the file system alone or by mounts too. */
__noinline int path_is_secret(const struct match *from)
{
	if (!from)
		return SECRET_NONE;
	struct match m = *from; /* bpf_loop wants it on this stack */
	bpf_loop(MAX_STEPS, match_step, &m, 0);
	if (m.found || (m.names && name_matches(m.leaf, m.names, m.policy, m.generation)))
		return SECRET_OPENED;
	return m.ended ? SECRET_NONE : SECRET_DEEP;
}

/* secret looks a file up in the lists of cx's policy. */
static __always_inline int secret(struct cgroup_ctx *cx, struct dentry *dentry, struct mount *mount,
                                  int moves)
{
	__u32 slot = cx->policy;
	struct secret_list *l = bpf_map_lookup_elem(&secret_lists, &slot);
	if (!l || !l->generation)
		return SECRET_NONE;
	if (detached(dentry))
		return SECRET_HANDLE;
	struct match m = {.policy = slot, .generation = l->generation, .names = l->anywhere, .moves = moves};
	m.dentry = m.leaf = address_of(dentry);
	int how = path_is_secret(&m);
	if (how || !mount)
		return how;
	m.mount = address_of(mount);
	return path_is_secret(&m);
}

static __always_inline void emit_secret(struct cgroup_ctx *cx, struct dentry *dentry, __u32 how)
{
	struct secret_open *r = bpf_ringbuf_reserve(&secret_opens, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_SECRET); /* the daemon finds the taint itself */
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	struct task_struct *t = bpf_get_current_task_btf();
	r->time = bpf_ktime_get_boot_ns();
	r->container = cx->container ? cx->container : bpf_get_current_cgroup_id();
	r->start = BPF_CORE_READ(t, group_leader, start_boottime);
	r->inode = BPF_CORE_READ(dentry, d_inode, i_ino);
	r->device = BPF_CORE_READ(dentry, d_inode, i_sb, s_dev);
	r->tgid = bpf_get_current_pid_tgid() >> 32;
	r->uid = bpf_get_current_uid_gid();
	r->how = how;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	r->cut = 1;
	for (int i = 0; i < SHOWN; i++) {
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
		if (parent == dentry) {
			r->cut = 0;
			break;
		}
		bpf_probe_read_kernel_str(r->name[i], SHOWN_NAME, BPF_CORE_READ(dentry, d_name.name));
		r->shown = i + 1;
		dentry = parent;
	}
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
}

/* The bit is in force before the file can be read; without room for it, it cannot be. */
static __always_inline int taint_for_secret(struct cgroup_ctx *cx, struct dentry *dentry, __u32 how)
{
	int fresh = set_taint(cx->container ? cx->container : bpf_get_current_cgroup_id(), TAINT_SECRET);
	if (fresh > 0)
		emit_secret(cx, dentry, how);
	return fresh >= 0;
}

/* passes over most files of most tasks: 1 if this one must be looked at. */
static __always_inline int suspect(struct secret_filter *f, struct dentry *dentry)
{
	__u32 length = dentry->d_name.len;
	if (has_length(f->lengths, length) || ((struct dentry___flags *)dentry)->d_flags & OWN_NAMES)
		return 1;
	__u64 directory = dentry->d_parent->d_inode->i_ino;
	if (has_names(f, directory, length) || (has_length(f->starred, length) && has_names(f, directory, 0)))
		return 1;
	for (int i = 0; i < MAX_STEPS; i++) {
		struct dentry *parent = dentry->d_parent;
		struct inode *inode = dentry->d_inode;
		__u64 number = inode->i_ino;
		if (filtered(f, number))
			return 1;
		if (parent == dentry)
			return number != f->root_inode || inode->i_sb->s_dev != f->root_device;
		dentry = parent;
	}
	return 1;
}

/* 1: it is mounted by itself, so that its name is that of where, which suspect does not see. */
static __always_inline int is_mounted(struct file *file, struct dentry *dentry)
{
	return file->f_path.mnt->mnt_root == dentry;
}

/* 1: what is remembered of this task's cgroup says that it may open anything. */
static __always_inline int may_open_all(void)
{
	__u64 id = bpf_get_current_cgroup_id(), epoch = current_epoch();
	struct walk_entry *e = find_walk(id);
	if (!e || !epoch)
		return 0;
	__u64 seq = read_seq(&e->seq);
	if (e->epoch != epoch || e->ctx.cgroup != id || (e->ctx.guarded && !(e->ctx.taint & TAINT_SECRET)))
		return 0;
	return same_seq(&e->seq, seq);
}

static __always_inline struct mount *mount_of(struct file *file)
{
	return mount_at(BPF_CORE_READ(file, f_path.mnt));
}

/* 1: goes on, tainted if it is secret. Addresses: a global function takes no pointers to these. */
__noinline int check_secret_at(__u64 dentry_at, __u64 mount_at, __u32 how)
{
	struct dentry *dentry = (struct dentry *)dentry_at;
	struct mount *mount = (struct mount *)mount_at;
	struct cgroup_ctx cx;
	walk_current(&cx);
	if (!cx.guarded || (cx.taint & TAINT_SECRET))
		return 1;
	int found = secret(&cx, dentry, mount, how == SECRET_LINKED);
	if (!found)
		return 1;
	return taint_for_secret(&cx, dentry, found == SECRET_OPENED ? how : found);
}

static __always_inline int check_secret(struct dentry *dentry, struct mount *mount, __u32 how)
{
	return check_secret_at(address_of(dentry), address_of(mount), how);
}

static __always_inline struct secret_filter *filter(void)
{
	__u32 zero = 0;
	struct secret_filter *f = bpf_map_lookup_elem(&secret_filters, &zero);
	return f && f->on ? f : 0;
}

/* Until 6.8, overlayfs opens the file below under its own path: only the inode tells which one it is. It can
 * have several names. */
static __always_inline int check_secret_below(struct inode *inode, struct dentry *above)
{
	struct hlist_node *at = first_alias(inode);
	for (int n = 0; n < MAX_ALIASES && at; n++) {
		struct dentry *below = alias(at);
		if (!check_secret(below, 0, SECRET_OPENED))
			return 0;
		at = BPF_CORE_READ(at, next);
	}
	struct cgroup_ctx cx;
	walk_current(&cx);
	if (!at || !cx.guarded || (cx.taint & TAINT_SECRET))
		return 1;
	return taint_for_secret(&cx, above, SECRET_DEEP);
}

/* Numbers of devices, as the kernel counts: major << 20 | minor. */
#define MAJOR_MEMORY 1
#define MAJOR_TERMINAL 4
#define MAJOR_OWN_TERMINAL 5
#define MAJOR_MISC 10
#define MAJOR_PTY 136 /* and seven more */
#define MAJOR_NVIDIA 195
#define MAJOR_GPU 226
#define MAJOR_ACCELERATOR 261

/* is_local: what is written to it says nothing to anybody else, but to a terminal; or other hooks judge it.
 * The name of a device is anybody's (B169), and what is written to KVM can be in the kernel's log (B171). */
static __always_inline int is_local(__u32 device, int writes)
{
	__u32 major = device >> 20, minor = device & 0xfffff;
	struct settings *c = configuration();
	if (major == MAJOR_MEMORY)
		return minor == 3 || minor == 5 || (minor >= 7 && minor <= 9) || (minor == 11 && !writes);
	if (major == MAJOR_TERMINAL)
		return minor < 64; /* those from there on are serial lines */
	if (major == MAJOR_MISC)
		return minor == 183 || minor == 200 || minor == 229; /* random numbers, TUN, FUSE */
	if (major == MAJOR_OWN_TERMINAL)
		return minor == 0 ||
		       minor == 2; /* 1 is the machine's console, which may be a serial line (B126) */
	if (major == MAJOR_GPU)
		return minor >= 128 &&
		       minor < 192; /* the others give a buffer a number that everybody may use */
	if (major >> 3 == MAJOR_PTY >> 3 || major == MAJOR_NVIDIA || major == MAJOR_ACCELERATOR)
		return 1;
	for (int i = 0; c && i < MAX_PROCESSORS; i++)
		if (c->processors[i] && c->processors[i] == major)
			return 1;
	return 0;
}

/* Who has a device, has it send what he likes: a modem or a radio by itself, vhost by a thread of the kernel
 * (B48), and uinput types on the machine's own desktop (B81). A disk may be another machine's, too; device is
 * 0 for one. */
__noinline int may_open_device(__u32 device, int writes)
{
	struct cgroup_ctx cx;
	if (is_local(device, writes))
		return 1;
	judged_ctx(&cx);
	if (is_unrestricted(&cx))
		return 1;
	count(COUNT_DENIED_SOCKET);
	return 0;
}

struct pid___of {
	struct hlist_head tasks[1]; /* the first thread with that id */
} __attribute__((preserve_access_index));

struct ctl_table___of {
	const char *procname;
} __attribute__((preserve_access_index));

struct proc_inode___of {
	struct pid___of *pid; /* none outside of /proc/PID */
	void *sysctl;         /* none outside of /proc/sys */
	struct ctl_table___of *sysctl_entry;
	struct inode vfs_inode;
} __attribute__((preserve_access_index));

struct task_struct___of {
	struct hlist_node pid_links[1];
} __attribute__((preserve_access_index));

struct cred___effective {
	struct {
		__u32 val;
	} euid;
} __attribute__((preserve_access_index));

struct net___set {
	struct user_namespace___first *user_ns;
} __attribute__((preserve_access_index));

/* may_set: the machine's settings, and those of its networks, are root's, with or without capabilities. They
 * say how the kernel answers others, and everybody can read them (B107). So do those of a network that the
 * container has entered (B144). */
static __always_inline int may_set(struct cgroup_ctx *cx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct net___set *net = (void *)BPF_CORE_READ(t, nsproxy, net_ns);
	struct user_namespace___first *owner = BPF_CORE_READ(net, user_ns);
	if (arriving())
		return 1;
	if (BPF_CORE_READ(owner, parent))
		return owns(cx, (__u64)owner);
	struct cred___effective *cred = (void *)BPF_CORE_READ(t, cred);
	return BPF_CORE_READ(cred, euid.val) != 0;
}

/* turns_off: without kernel.ftrace_enabled the kernel calls none of the programs at its functions (B117). No
 * other setting is called so. */
static __always_inline int turns_off(struct proc_inode___of *file)
{
	const union {
		char text[16];
		__u64 word[2];
	} name = {"ftrace_enabled"};
	__u64 is[2] = {};
	bpf_probe_read_kernel_str(is, sizeof(is), BPF_CORE_READ(file, sysctl_entry, procname));
	return is[0] == name.word[0] && is[1] == name.word[1];
}

/* is_login: who a process logged in as is written into the audit log, any number of 32 bits (B170). */
static __always_inline int is_login(struct dentry *dentry)
{
	const union {
		char text[16];
		__u64 word[2];
	} name = {"loginuid"};
	__u64 is[2] = {};
	bpf_probe_read_kernel_str(is, sizeof(is), BPF_CORE_READ(dentry, d_name.name));
	return is[0] == name.word[0] && is[1] == name.word[1];
}

/* What is written below /proc/PID says something to that process: its user id map takes 32 bits, its time
 * offsets more (B83). What is neither a process's nor a setting asks something of the machine, and the
 * kernel's log, or others, hear of it (B128, B170). at: the address of a dentry below /proc, or 0. */
__noinline int may_write_proc(__u64 at)
{
	struct cgroup_ctx cx;
	struct dentry *dentry = (struct dentry *)at;
	struct proc_inode___of *file =
	    (void *)BPF_CORE_READ(dentry, d_inode) - bpf_core_field_offset(struct proc_inode___of, vfs_inode);
	struct hlist_node *node = BPF_CORE_READ(file, pid, tasks[0].first);
	void *sysctl = BPF_CORE_READ(file, sysctl);
	judged_ctx(&cx);
	struct policy *p = policy_of(&cx);
	int clean = is_unrestricted(&cx) &&
	            !(cx.guarded && p && p->mode != MODE_OBSERVE && sysctl && turns_off(file));
	int says = (!node && !sysctl) || is_login(dentry);
	if (clean || (sysctl && may_set(&cx)) || (says && arriving()))
		return 1;
	struct task_struct *t = (void *)node - bpf_core_field_offset(struct task_struct___of, pid_links);
	if (node && !says && inside(&cx, cgroup_of(t)))
		return 1;
	count(COUNT_DENIED_ATTACH);
	return 0;
}

/* may_write_kernel: of the file systems that are the kernel's own. /sys is root's. */
static __always_inline int may_write_kernel(struct file *file)
{
	__u32 magic = file->f_inode->i_sb->s_magic;
	if (magic == PROC_SUPER_MAGIC)
		return may_write_proc(address_of(file->f_path.dentry));
	if (magic == SECURITYFS_MAGIC || magic == SELINUX_MAGIC || magic == DEBUGFS_MAGIC ||
	    magic == TRACEFS_MAGIC || magic == AAFS_MAGIC)
		return may_write_proc(0);
	return 1;
}

/* do_dentry_open calls it for every way to open: also exec, io_uring, handles and /proc/PID/fd. Not for
 * O_PATH, which reads nothing. */
SEC("fmod_ret/security_file_open")
int BPF_PROG(weir_open, struct file *file)
{
	if (outside())
		ANSWER(0);
	__u32 kind = file->f_inode->i_mode & S_IFMT;
	int writes = (file->f_mode & FMODE_WRITE) != 0;
	if (kind == S_IFCHR && !may_open_device(file->f_inode->i_rdev, writes))
		ANSWER(-EPERM);
	if (kind == S_IFBLK && writes && !may_open_device(0, 1))
		ANSWER(-EPERM);
	if (kind == S_IFREG && writes && !may_write_kernel(file))
		ANSWER(-EPERM);
	struct secret_filter *f = filter();
	if (!f || may_open_all())
		ANSWER(0);
	if (kind == S_IFDIR || !(file->f_mode & FMODE_READ))
		ANSWER(0);
	struct dentry *dentry = file->f_path.dentry;
	if (dentry->d_inode != file->f_inode) {
		if (check_secret_below(file->f_inode, dentry))
			ANSWER(0);
		ANSWER(-EPERM);
	}
	if ((!suspect(f, dentry) && !is_mounted(file, dentry)) ||
	    check_secret(dentry, mount_of(file), SECRET_OPENED))
		ANSWER(0);
	ANSWER(-EPERM);
}

SEC("fmod_ret/security_file_receive")
int BPF_PROG(weir_receive_file, struct file *file)
{
	if (!filter() || (file->f_inode->i_mode & S_IFMT) == S_IFDIR || !(file->f_mode & FMODE_READ))
		ANSWER(0);
	if (check_secret(file->f_path.dentry, mount_of(file), SECRET_RECEIVED))
		ANSWER(0);
	ANSWER(-EPERM);
}

SEC("fmod_ret/security_inode_link")
int BPF_PROG(weir_link, struct dentry *dentry)
{
	if (!filter() || check_secret(dentry, 0, SECRET_LINKED))
		ANSWER(0);
	ANSWER(-EPERM);
}

/* A link on the way to what is listed, which is found no more without it. dentry is an address. */
__noinline int check_removed(__u64 dentry_at)
{
	struct dentry *dentry = (struct dentry *)dentry_at;
	struct secret_key key = {};
	struct cgroup_ctx cx;
	if ((BPF_CORE_READ(dentry, d_inode, i_mode) & S_IFMT) != S_IFLNK)
		return 1;
	walk_current(&cx);
	if (!cx.guarded || (cx.taint & TAINT_SECRET))
		return 1;
	key.policy = cx.policy;
	struct secret_list *l = bpf_map_lookup_elem(&secret_lists, &key.policy);
	if (!l)
		return 1;
	key.generation = l->generation;
	key.inode = BPF_CORE_READ(dentry, d_inode, i_ino);
	key.device = BPF_CORE_READ(dentry, d_inode, i_sb, s_dev);
	return !bpf_map_lookup_elem(&secret_nodes, &key) || taint_for_secret(&cx, dentry, SECRET_REMOVED);
}

SEC("fmod_ret/security_inode_unlink")
int BPF_PROG(weir_unlink, struct inode *dir, struct dentry *dentry)
{
	if (!filter() || check_removed(address_of(dentry)))
		ANSWER(0);
	ANSWER(-EPERM);
}

/* Links below what is listed are not looked up, nor those with a listed name (B133). */
SEC("fmod_ret/security_inode_follow_link")
int BPF_PROG(weir_follow_link, struct dentry *dentry)
{
	if (outside())
		ANSWER(0);
	struct secret_filter *f = filter();
	if (!f || may_open_all() || !suspect(f, dentry) || check_secret(dentry, 0, SECRET_FOLLOWED))
		ANSWER(0);
	ANSWER(-EPERM);
}

SEC("fmod_ret/security_inode_rename")
int BPF_PROG(weir_rename, struct inode *dir, struct dentry *dentry, struct inode *to_dir, struct dentry *to,
             unsigned int flags)
{
	if (!filter())
		ANSWER(0);
	if (!check_secret(dentry, 0, SECRET_LINKED))
		ANSWER(-EPERM);
	if (flags & RENAME_EXCHANGE ? !check_secret(to, 0, SECRET_LINKED) : !check_removed(address_of(to)))
		ANSWER(-EPERM);
	ANSWER(0);
}

struct inode_query {
	__u32 fd;
};

SEC("syscall")
int weir_inode(struct inode_query *q)
{
	__u32 zero = 0;
	struct inode_id *id = bpf_map_lookup_elem(&inode_ids, &zero);
	struct task_struct *t = bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(t, files, fdt);
	struct file **fds = BPF_CORE_READ(table, fd), *file = 0;
	if (!id || q->fd >= BPF_CORE_READ(table, max_fds))
		return 1;
	if (bpf_probe_read_kernel(&file, sizeof(file), &fds[q->fd]) || !file)
		return 1;
	id->inode = BPF_CORE_READ(file, f_inode, i_ino);
	id->device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	id->generation = BPF_CORE_READ(file, f_inode, i_generation);
	id->directory = (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFDIR;
	return 0;
}
