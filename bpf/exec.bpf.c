/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was executed, read from the new image's own memory after the kernel
 * copied it there: no other thread can change what is judged (B01). */
#include "hold.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_PATH 2048
#define MAX_NAME 256
#define MAX_ARGV 16384
#define MAX_ENV 8192
#define MAX_STEPS 64
#define MAX_PARENTS 8
#define RING_SIZE (2 << 20)

enum exec_flag {
	EXEC_ARGV_CUT = 1,
	EXEC_ENV_CUT = 2,
	EXEC_PATH_CUT = 4,
	EXEC_UNLINKED = 8,
	EXEC_SCRIPT = 16, /* an interpreter runs filename */
};

struct parent {
	__u64 start;
	__u32 tgid;
	__u32 pad;
	char comm[16];
};

/* Followed by path components (leaf first, each ended by a slash), filename,
 * interpreter, argv and environment, of the lengths given. */
struct exec {
	__u64 time;
	__u64 container;
	__u64 cgroup;
	__u64 start;
	__u64 inode;
	__u64 argv_hash;
	__u32 device;
	__u32 tgid;
	__u32 uid;
	__u32 netns;
	__u32 pidns;
	enum exec_flag flags;
	__u32 taint;
	__u32 parents;
	__u32 path_length;
	__u32 filename_length;
	__u32 interp_length;
	__u32 argv_length;
	__u32 env_length;
	__u32 mntns;
	char comm[16];
	struct parent parent[MAX_PARENTS];
};

#define MAX_DATA (MAX_PATH + 2 * MAX_NAME + MAX_ARGV + MAX_ENV)

/* Not on the stack: there the verifier follows each step's length. */
struct path_walk {
	__u64 dentry;
	__u64 mount;
	__u32 length;
	__u32 done;
};

struct scratch {
	struct exec exec;
	__u8 data[MAX_DATA + 16];
	struct path_walk path;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_SIZE);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} execs SEC(".maps");

/* asleep: the reader waits to be woken. Else it looks by itself every few milliseconds: waking it for each
 * record would cost each exec 6 to 14 %. */
volatile __u32 asleep;

/* bpf2go makes Go types only of what the object mentions */
const enum counter *unused_counter __attribute__((unused));

struct path_of {
	struct scratch *s;
};

static long path_step(__u32 i, struct path_of *of)
{
	struct scratch *s = of->s;
	struct path_walk *p = &s->path;
	/* BPF_CORE_READ would relocate an access to p inside its argument */
	struct mount *mount = (struct mount *)p->mount;
	struct dentry *dentry = (struct dentry *)p->dentry;
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);
		p->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		p->mount = (__u64)above;
		p->done = above == mount;
		return p->done;
	}
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
	__u32 length = BPF_CORE_READ(dentry, d_name.len);
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	__u32 at = p->length;
	if (parent == dentry) {
		p->done = 1; /* not mounted anywhere: memfd and the like */
		if (at)
			return 1;
	}
	if (length > MAX_NAME - 1)
		length = MAX_NAME - 1;
	if (at > MAX_PATH - MAX_NAME - 1)
		return 1;
	bpf_probe_read_kernel(&s->data[at], length, name);
	at += length;
	if (at > MAX_PATH - 1)
		return 1;
	s->data[at] = '/';
	p->length = at + 1;
	if (p->done)
		return 1;
	p->dentry = (__u64)parent;
	return 0;
}

static __always_inline void read_path(struct scratch *s, struct file *f)
{
	struct path_of of = {.s = s};
	struct path_walk *p = &s->path;
	struct vfsmount *mnt = BPF_CORE_READ(f, f_path.mnt);
	p->dentry = (__u64)BPF_CORE_READ(f, f_path.dentry);
	p->mount = (__u64)mnt - bpf_core_field_offset(struct mount, mnt);
	p->length = p->done = 0;
	bpf_loop(MAX_STEPS, path_step, &of, 0);
	s->exec.path_length = p->length;
	if (!p->done)
		s->exec.flags |= EXEC_PATH_CUT;
}

/* SipHash-2-4 over argv, keyed so that nobody can make a second command with
 * the hash of an approved one (B36). J.-P. Aumasson, D. J. Bernstein, 2012. */
struct sip {
	__u64 v0, v1, v2, v3;
	struct scratch *s;
	__u32 at;
};

static __always_inline __u64 rotl(__u64 x, int by)
{
	return (x << by) | (x >> (64 - by));
}

static __always_inline void sip_round(struct sip *h)
{
	h->v0 += h->v1;
	h->v1 = rotl(h->v1, 13) ^ h->v0;
	h->v0 = rotl(h->v0, 32);
	h->v2 += h->v3;
	h->v3 = rotl(h->v3, 16) ^ h->v2;
	h->v0 += h->v3;
	h->v3 = rotl(h->v3, 21) ^ h->v0;
	h->v2 += h->v1;
	h->v1 = rotl(h->v1, 17) ^ h->v2;
	h->v2 = rotl(h->v2, 32);
}

static __always_inline void sip_word(struct sip *h, __u64 word)
{
	h->v3 ^= word;
	sip_round(h);
	sip_round(h);
	h->v0 ^= word;
}

static long sip_step(__u32 i, struct sip *h)
{
	__u32 at = h->at + i * 8;
	__u64 word;
	if (at > MAX_DATA)
		return 1;
	__builtin_memcpy(&word, &h->s->data[at], sizeof(word));
	sip_word(h, word);
	return 0;
}

static __always_inline __u64 argv_hash(struct scratch *s, __u32 at, __u32 length)
{
	struct settings *c = configuration();
	if (!c)
		return 0;
	struct sip h = {.s = s, .at = at};
	h.v0 = c->key[0] ^ 0x736f6d6570736575ULL;
	h.v1 = c->key[1] ^ 0x646f72616e646f6dULL;
	h.v2 = c->key[0] ^ 0x6c7967656e657261ULL;
	h.v3 = c->key[1] ^ 0x7465646279746573ULL;
	bpf_loop((length + 7) / 8, sip_step, &h, 0);
	sip_word(&h, length);
	h.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&h);
	return h.v0 ^ h.v1 ^ h.v2 ^ h.v3;
}

struct parent_walk {
	struct exec *e;
	struct task_struct *task;
};

static long parent_step(__u32 i, struct parent_walk *p)
{
	struct task_struct *task = p->task;
	struct task_struct *t = BPF_CORE_READ(task, real_parent, group_leader);
	if (!t || t == task || i >= MAX_PARENTS)
		return 1;
	struct parent *out = &p->e->parent[i & (MAX_PARENTS - 1)];
	out->start = BPF_CORE_READ(t, start_boottime);
	out->tgid = BPF_CORE_READ(t, tgid);
	BPF_CORE_READ_INTO(&out->comm, t, comm);
	p->e->parents = i + 1;
	p->task = t;
	return 0;
}

static __always_inline __u32 read_text(struct scratch *s, __u32 *at, const char *text)
{
	if (*at > MAX_PATH + MAX_NAME)
		return 0;
	long n = bpf_probe_read_kernel_str(&s->data[*at], MAX_NAME, text);
	if (n <= 0 || n > MAX_NAME)
		return 0;
	*at += n;
	return n;
}

/* Reads user memory [from, to); what does not fit or cannot be read is cut. */
static __always_inline __u32 read_user(struct scratch *s, __u32 at, __u64 from, __u64 to, __u32 most,
                                       __u32 cut)
{
	__u64 length = to - from;
	if (to < from || length > most) {
		s->exec.flags |= cut;
		length = most;
	}
	if (at > MAX_DATA - most)
		return 0;
	if (bpf_probe_read_user(&s->data[at], length, (void *)from)) {
		s->exec.flags |= cut;
		return 0;
	}
	return length;
}

static __always_inline void read_exe(struct exec *e, struct file *f)
{
	e->inode = BPF_CORE_READ(f, f_inode, i_ino);
	e->device = BPF_CORE_READ(f, f_inode, i_sb, s_dev);
	if (!BPF_CORE_READ(f, f_inode, i_nlink))
		e->flags |= EXEC_UNLINKED;
}

/* review: exec. What must not be stopped runs sealed; what would be and has no room for the question is
 * killed, or a flood of questions would have commands run that nobody judged. */
__noinline int review(struct cgroup_ctx *cx)
{
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
	if (!cx || !s || !cx->taint)
		return 0;
	struct exec *e = &s->exec;
	struct policy *p = policy_of(cx);
	struct task_struct *t = bpf_get_current_task_btf();
	/* it is seen to stop: a shell would take the job from the terminal */
	if (!p || !(p->flags & POLICY_REVIEW) || p->mode == MODE_OBSERVE || !is_command(cx, p) ||
	    BPF_CORE_READ(t, signal, tty))
		return 0;
	struct hold_key key = {.tgid = e->tgid};
	struct hold hold = {.start = e->start, .since = bpf_ktime_get_boot_ns(), .state = HOLD_STOPPED};
	struct record *r = bpf_ringbuf_reserve(&hold_reqs, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_ASK);
		bpf_send_signal(SIGKILL);
		return 0;
	}
	if (bpf_map_update_elem(&held, &key, &hold, BPF_ANY)) {
		count(COUNT_LOST_ASK);
		bpf_ringbuf_discard(r, 0);
		bpf_send_signal(SIGKILL);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->time = e->time;
	r->container = e->container;
	r->cgroup = e->cgroup;
	r->taint = e->taint;
	r->tgid = r->exec_tgid = e->tgid;
	r->start = r->exec_start = e->start;
	r->inode = e->inode;
	r->device = e->device;
	r->argv_hash = e->argv_hash;
	r->uid = e->uid;
	r->kind = RECORD_EXEC;
	r->reason = REASON_TAINTED;
	__builtin_memcpy(r->comm, e->comm, sizeof(r->comm));
	count(COUNT_HELD);
	bpf_send_signal(SIGSTOP);
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* runc executes itself once more, or a copy without a name, before it is the container's program: by a
 * descriptor or as itself. Any other path may lead to a file without a name, too, that somebody in the
 * container made. */
static __always_inline int is_again(struct task *came, struct exec *e, struct linux_binprm *bprm)
{
	char path[24] = {};
	long n = bpf_probe_read_kernel_str(path, sizeof(path), BPF_CORE_READ(bprm, filename));
	__u32 at = !bpf_strncmp(path, 14, "/proc/self/fd/") ? 14 : !bpf_strncmp(path, 8, "/dev/fd/") ? 8 : 0;
	if (!at && bpf_strncmp(path, 15, "/proc/self/exe"))
		return 0;
	for (__u32 i = 0; i < sizeof(path); i++)
		if (at && i >= at && i + 1 < n && (path[i] < '0' || path[i] > '9'))
			return 0;
	return e->flags & EXEC_UNLINKED || (came->inode == e->inode && came->device == e->device);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(weir_exec, struct task_struct *t, int old_pid, struct linux_binprm *bprm)
{
	struct cgroup_ctx cx;
	walk_current(&cx);
	if (!cx.guarded)
		return 0;
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s)
		return 0;
	struct exec *e = &s->exec;
	struct file *file = BPF_CORE_READ(t, mm, exe_file);
	__builtin_memset(e, 0, sizeof(*e));
	e->time = bpf_ktime_get_boot_ns();
	e->container = cx.container;
	e->taint = cx.taint;
	e->cgroup = bpf_get_current_cgroup_id();
	e->tgid = bpf_get_current_pid_tgid() >> 32;
	e->start = BPF_CORE_READ(t, group_leader, start_boottime);
	e->uid = bpf_get_current_uid_gid();
	e->netns = BPF_CORE_READ(t, nsproxy, net_ns, ns.inum);
	e->mntns = BPF_CORE_READ(t, nsproxy, mnt_ns, ns.inum);
	e->pidns = BPF_CORE_READ(t, nsproxy, pid_ns_for_children, ns.inum);
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	read_exe(e, file);
	struct task *came = bpf_task_storage_get(&tasks, t, 0, 0);
	if (came && !is_again(came, e, bprm))
		came->arriving = 0;
	read_path(s, file);

	/* one string until binfmt_script or binfmt_misc calls bprm_change_interp */
	char *filename = BPF_CORE_READ(bprm, filename), *interp = BPF_CORE_READ(bprm, interp);
	if (filename != interp)
		e->flags |= EXEC_SCRIPT;
	__u32 at = e->path_length;
	e->filename_length = read_text(s, &at, filename);
	e->interp_length = read_text(s, &at, interp);
	e->argv_length = read_user(s, at, BPF_CORE_READ(t, mm, arg_start), BPF_CORE_READ(t, mm, arg_end),
	                           MAX_ARGV, EXEC_ARGV_CUT);
	__u32 argv_at = at;
	at += e->argv_length;
	if (at > MAX_DATA - MAX_ENV)
		return 0;
	/* the last word of argv is hashed padded with zeros */
	__builtin_memset(&s->data[at], 0, 8);
	if (!(e->flags & EXEC_ARGV_CUT))
		e->argv_hash = argv_hash(s, argv_at, e->argv_length);
	e->env_length = read_user(s, at, BPF_CORE_READ(t, mm, env_start), BPF_CORE_READ(t, mm, env_end),
	                          MAX_ENV, EXEC_ENV_CUT);
	at += e->env_length;

	struct parent_walk p = {.e = e, .task = t};
	bpf_loop(MAX_PARENTS, parent_step, &p, 0);

	struct task *id = bpf_task_storage_get(&tasks, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (id) {
		id->exec_start = e->start;
		id->exec_tgid = e->tgid;
		id->inode = e->inode;
		id->device = e->device;
		/* no claim by command for a file that has no name (B06) */
		id->argv_hash = e->flags & EXEC_UNLINKED ? 0 : e->argv_hash;
	}
	if (at > MAX_DATA)
		return 0;
	__u64 flags = asleep || bpf_ringbuf_query(&execs, BPF_RB_AVAIL_DATA) > RING_SIZE / 2
	                  ? BPF_RB_FORCE_WAKEUP
	                  : BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_output(&execs, s, sizeof(*e) + at, flags))
		count(COUNT_LOST_EXEC);
	review(&cx);
	return 0;
}
