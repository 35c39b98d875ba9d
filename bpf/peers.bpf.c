/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What crosses the container's edge without a packet of its own: Unix sockets, passed
 * descriptors, the memory of other processes, signals and limits, what processes share by
 * number or name, and what the kernel is asked to send. */
#include "ends.h"
#include "listener.h"
#include "options.h"
#include "owners.h"
#include "refuse.h"
#include "taint.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EADDRINUSE 98
#define PTRACE_MODE_ATTACH 2
#define PTRACE_MODE_NOAUDIT 4
#define S_IFMT 0170000
#define S_IFSOCK 0140000

/* gets_foreign: the current task is in cx, and not in the container that made sk, which own is. */
static __always_inline int gets_foreign(struct cgroup_ctx *cx, struct cgroup_ctx *own, struct sock *sk)
{
	walk_cgroup(own, BPF_CORE_READ(sk, sk_cgrp_data.cgroup));
	return own->guarded && own->container != cx->container;
}

static __always_inline int refuse_receipt(struct cgroup_ctx *cx)
{
	count(COUNT_DENIED_RECEIVE);
	emit_peer(cx, REASON_OUTSIDE, 0, 0, 0);
	return 0;
}

/* knows: cx's policy lists what sk is bound to, and nobody guarded has bound it: another container's socket
 * may have taken a listed name. Sealed, only the sensor's own are known. */
static __always_inline int knows(struct cgroup_ctx *cx, struct cgroup_ctx *other, struct sock *sk,
                                 struct unix_peer *key)
{
	struct policy *p = policy_of(cx);
	if (!p || other->guarded)
		return 0;
	key->policy = cx->policy;
	key->generation = p->generation;
	return is_listed(key, sk, p->mode == MODE_SEAL);
}

enum peer { PEER_SHUT, PEER_OUTSIDE, PEER_LISTED, PEER_OPEN };

/* peer_open: may the current process, in cx, talk to the owner of a socket? at: its address, as in walk_at.
 */
__noinline int peer_open(struct cgroup_ctx *cx, __u64 at)
{
	struct unix_peer key = {};
	struct cgroup_ctx other;
	struct sock *sk = (struct sock *)at;
	struct cgroup *cg = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	if (!cx)
		return PEER_SHUT;
	if (inside(cx, cg) && heard_inside(cx, sk))
		return PEER_OPEN;
	read_path(key.path, sk);
	walk_cgroup(&other, cg);
	int listed = knows(cx, &other, sk, &key);
	if (listed)
		return listed == LISTED_PEER ? PEER_LISTED : PEER_OPEN;
	if (!is_restricted(cx, policy_of(cx)))
		return PEER_OUTSIDE;
	count(COUNT_DENIED_UNIX);
	emit_peer(cx, REASON_OUTSIDE, 0, key.path, 0);
	return PEER_SHUT;
}

enum comer { COMES_REFUSED, COMES, COMES_FOREIGN };

/* may_come: the current process, in cx, may come to a socket with its own. Nobody outside comes to those of a
 * tainted container: he would bring a pipe that it speaks into, and the kernel tells him who listens, and how
 * many it takes. What a listed peer sends is an answer (B78). from and to are addresses, as in walk_at. */
__noinline int may_come(struct cgroup_ctx *cx, __u64 from, __u64 to)
{
	struct unix_peer key = {};
	struct cgroup_ctx own;
	struct sock *sk = (struct sock *)from;
	if (!cx || !gets_foreign(cx, &own, (struct sock *)to))
		return COMES;
	read_path(key.path, sk);
	if (knows(&own, cx, sk, &key))
		return COMES;
	return is_unrestricted(&own) ? COMES_FOREIGN : refuse_receipt(&own);
}

static __always_inline long note_end(__u64 cookie, enum unix_end end)
{
	return bpf_map_update_elem(&outside_unix, &cookie, &end, BPF_ANY);
}

SEC("fmod_ret/security_unix_stream_connect")
int BPF_PROG(weir_unix, struct sock *sock, struct sock *other, struct sock *newsk)
{
	struct cgroup_ctx cx;
	judged_ctx(&cx);
	if (!may_come(&cx, address_of(sock), address_of(other)))
		return -EPERM;
	if (!cx.guarded)
		return 0;
	struct settings *c = configuration();
	if (!c || bpf_get_socket_cookie(other) == c->control) {
		count(COUNT_DENIED_UNIX);
		emit_peer(&cx, REASON_CONTROL, 0, 0, 0);
		return -EPERM;
	}
	int open = peer_open(&cx, address_of(other));
	/* what it sends once tainted is refused, or looked up in the list each time */
	if ((open == PEER_OUTSIDE || open == PEER_LISTED) &&
	    note_end(bpf_get_socket_cookie(sock), open == PEER_OUTSIDE ? UNIX_OUTSIDE : UNIX_LISTED))
		return -EPERM;
	return open == PEER_SHUT ? -EPERM : 0;
}

SEC("fmod_ret/security_unix_may_send")
int BPF_PROG(weir_unix_send, struct socket *sock, struct socket *other)
{
	struct cgroup_ctx cx;
	struct sock *ear = other->sk;
	judged_ctx(&cx);
	if (!ear)
		return 0;
	__u64 to = address_of(ear);
	int comes = may_come(&cx, (__u64)BPF_CORE_READ(sock, sk), to);
	/* he is asked once, also when he connects, and sees it fill and empty from then on (B101) */
	if (comes == COMES_REFUSED ||
	    (comes == COMES_FOREIGN && note_end(bpf_get_socket_cookie(ear), UNIX_OUTSIDE)))
		return -EPERM;
	return !cx.guarded || peer_open(&cx, to) != PEER_SHUT ? 0 : -EPERM;
}

/* The daemon's own is closed by the kernel, too, when that is killed, before anybody else can have its number
 * (B119). */
SEC("fentry/unix_release")
int BPF_PROG(weir_unix_close, struct socket *sock)
{
	struct settings *c = configuration();
	if (!sock->sk || !c || bpf_get_socket_cookie(sock->sk) != c->control)
		return 0;
	c->daemon = 0;
	if (c->heartbeat)
		c->heartbeat = HEARTBEAT_GONE;
	return 0;
}

/* What a closed one has sent its peer still reads, and keeps it until then (B157). */
SEC("fentry/unix_sock_destructor")
int BPF_PROG(weir_unix_freed, struct sock *sk)
{
	__u64 cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	if (cookie)
		bpf_map_delete_elem(&outside_unix, &cookie);
	return 0;
}

/* Of a container that was guarded late, only those Unix sockets are its own that are made from then on, and
 * those that the daemon found in its hands alone: others may be anybody's (B60). */
SEC("fmod_ret/security_socket_post_create")
int BPF_PROG(weir_born, struct socket *sock, int family)
{
	struct cgroup_ctx cx;
	if (family != AF_UNIX)
		return 0;
	judged_ctx(&cx);
	if (cx.guarded & GUARDED_LATE && sock->sk)
		note_end(bpf_get_socket_cookie(sock->sk), UNIX_OWN);
	return 0;
}

/* What a container sends to a socket of its own is heard by whoever has that. So nobody else gets a network
 * socket, and nobody gets a Unix socket once the container is tainted; one that somebody got before is noted
 * (B64). */
static __always_inline int may_leave(struct cgroup_ctx *cx, struct sock *sk, int family)
{
	struct cgroup_ctx own;
	if (!gets_foreign(cx, &own, sk))
		return 1;
	if (family == AF_UNIX && is_unrestricted(&own)) {
		if (note_end(bpf_get_socket_cookie(sk), UNIX_OUTSIDE))
			return 0;
		gets_foreign(cx, &own, sk); /* a taint that came meanwhile may not have seen what is noted */
	}
	struct policy *p = policy_of(&own);
	if ((p && p->mode == MODE_OBSERVE) || (family == AF_UNIX && is_unrestricted(&own)))
		return 1;
	return refuse_receipt(&own);
}

/* There was no room to note an end that somebody outside has, which nobody can refuse any more: from now on
 * only what is noted as the container's own is. */
static __always_inline void doubt(__u64 container)
{
	struct state fresh = {};
	struct state *s = bpf_map_lookup_elem(&cgroups, &container);
	if (!s) {
		bpf_map_update_elem(&cgroups, &container, &fresh, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&cgroups, &container);
	}
	if (!s)
		return;
	__sync_fetch_and_or((__u32 *)&s->flags, STATE_DOUBT);
	forget();
}

/* A connection that waited in a container's listener, which somebody outside has (B64). */
SEC("fexit/unix_accept")
int BPF_PROG(weir_accepted, struct socket *sock, struct socket *newsock)
{
	struct cgroup_ctx cx, own;
	struct sock *sk = newsock->sk;
	judged_ctx(&cx);
	if (sk && gets_foreign(&cx, &own, BPF_CORE_READ(sock, sk)) &&
	    note_end(bpf_get_socket_cookie(sk), UNIX_OUTSIDE))
		doubt(own.container);
	return 0;
}

static __always_inline int may_accept(struct socket *sock)
{
	struct cgroup_ctx cx, own;
	struct sock *sk = BPF_CORE_READ(sock, sk);
	if (!sk || BPF_CORE_READ(sk, __sk_common.skc_family) != AF_UNIX)
		return 1;
	judged_ctx(&cx);
	return !gets_foreign(&cx, &own, sk) || is_unrestricted(&own) || refuse_receipt(&own);
}

/* What a thread last received from, with room for descriptors: an address, as in walk_at. They may come long
 * after the call began, when the container is tainted or the other end has left it (B93, B157). */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} receives_from SEC(".maps");

/* leads_outside: a connection leads to somebody outside cx's container. */
static __always_inline int leads_outside(struct cgroup_ctx *cx, struct sock *sk)
{
	return !(inside(cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup)) && flows_inside(cx, sk));
}

/* receives_outside: the same of what the thread receives from. */
static __always_inline int receives_outside(struct cgroup_ctx *cx)
{
	__u64 *from = bpf_task_storage_get(&receives_from, bpf_get_current_task_btf(), 0, 0);
	return from && *from && leads_outside(cx, (struct sock *)*from);
}

/* note_receipt: from: 0: no connection, others know who sends there. Says whether it could. */
static __always_inline int note_receipt(__u64 from)
{
	__u64 *was = bpf_task_storage_get(&receives_from, bpf_get_current_task_btf(), 0,
	                                  from ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (was)
		*was = from;
	return was || !from;
}

/* A network socket from outside has packets that this container's check never
 * sees, so it is refused to clean containers too; others only under taint (B22). */
SEC("fmod_ret/security_file_receive")
int BPF_PROG(weir_receive, struct file *file)
{
	struct cgroup_ctx cx;
	judged_ctx(&cx);
	if (!is_unrestricted(&cx) && receives_outside(&cx) && !refuse_receipt(&cx))
		return -EPERM;
	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	struct socket *sock = bpf_sock_from_file(file);
	struct sock *sk = sock ? sock->sk : 0;
	if (!sk)
		return 0;
	int family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (!may_leave(&cx, sk, family))
		return -EPERM;
	if (is_let_be(&cx) || inside(&cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup)))
		return 0;
	if (family == AF_UNIX && is_unrestricted(&cx))
		return 0;
	refuse_receipt(&cx);
	return -EPERM;
}

static __always_inline int may_attach(struct cgroup_ctx *cx, struct task_struct *target)
{
	struct policy *p = policy_of(cx);
	if (!cx->guarded || (p && p->mode == MODE_OBSERVE))
		return 1;
	if (p && !cx->taint && !cx->deep && inside(cx, cgroup_of(target)))
		return 1;
	count(COUNT_DENIED_ATTACH);
	emit_peer(cx, REASON_ATTACH, CALL_PTRACE, 0, BPF_CORE_READ(target, tgid));
	return 0;
}

/* What can be read of a process can be opened for writing below /proc/PID/fd, root and cwd. ps asks for every
 * process, so nothing is told. */
static __always_inline int may_read(struct cgroup_ctx *cx, struct task_struct *target, unsigned int mode)
{
	if (is_unrestricted(cx))
		return 1;
	/* a runtime opens the namespaces of other containers before it is the program */
	if (inside(cx, cgroup_of(target)) || arriving())
		return 1;
	if (!(mode & PTRACE_MODE_NOAUDIT))
		count(COUNT_DENIED_ATTACH);
	return 0;
}

/* ptrace, /proc/PID/mem, process_vm_*, pidfd_getfd (B30). A process may look at itself. */
SEC("fmod_ret/security_ptrace_access_check")
int BPF_PROG(weir_attach, struct task_struct *child, unsigned int mode)
{
	struct cgroup_ctx cx;
	note_receipt(0); /* pidfd_getfd receives from no socket */
	if (BPF_CORE_READ(child, tgid) == bpf_get_current_pid_tgid() >> 32)
		return 0;
	judged_ctx(&cx);
	if (!(mode & PTRACE_MODE_ATTACH))
		return may_read(&cx, child, mode) ? 0 : -EPERM;
	return may_attach(&cx, child) ? 0 : -EPERM;
}

SEC("fmod_ret/security_ptrace_traceme")
int BPF_PROG(weir_traceme, struct task_struct *parent)
{
	struct cgroup_ctx cx;
	judged_ctx(&cx);
	return may_attach(&cx, parent) ? 0 : -EPERM;
}

/* A socket of a kind that is not to be opened under taint may have been before. What it sends is refused;
 * but its other calls have the kernel say something, too (B62). */
static __always_inline int may_use(struct socket *sock)
{
	struct cgroup_ctx cx;
	struct sock *sk = BPF_CORE_READ(sock, sk);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family), type = BPF_CORE_READ(sk, sk_type),
	      proto = BPF_CORE_READ(sk, sk_protocol);
	if (!sk || family == AF_UNIX || family == AF_NETLINK)
		return 1;
	if ((family == AF_INET || family == AF_INET6) && is_plain(type, proto))
		return 1;
	judged_ctx(&cx);
	if (is_unrestricted(&cx))
		return 1;
	struct dest d = {.addr = {family, type}, .proto = proto};
	count(COUNT_DENIED_SOCKET);
	refuse(&cx, &d, 0, REASON_FAMILY);
	return 0;
}

/* No check sees the packets of a socket that was made outside, and what is done to it they carry: those of
 * the kernel too (B109). Receiving and asking are no more than that. */
static __always_inline int may_change_socket(struct socket *sock)
{
	struct cgroup_ctx cx;
	struct dest d = {};
	struct sock *sk = sock->sk;
	if (!may_use(sock))
		return 0;
	if (!sk || outside())
		return 1;
	__u16 family = sk->__sk_common.skc_family;
	if (family != AF_INET && family != AF_INET6)
		return 1;
	judged_ctx(&cx);
	if (is_unrestricted(&cx) || inside(&cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup)))
		return 1;
	d.proto = sk->sk_protocol;
	read_peer(&d, sk);
	count(COUNT_DENIED_SOCKET);
	refuse(&cx, &d, 0, REASON_OUTSIDE);
	return 0;
}

struct pt_regs___call {
	long unsigned int orig_ax, bx;
} __attribute__((preserve_access_index));

#define TS_COMPAT 2
#define PF_IO_WORKER 0x10
#define SYS_SETSOCKOPT 54

/* weir_option judges once more what the kernel has read, but is not asked about 32-bit calls, nor about some
 * of io_uring's, nor about sockets that were made outside: by those a guarded container never sets what
 * matters when it is read (B120). */
static __always_inline int may_set_unread(struct sock *sk, int option)
{
	struct cgroup_ctx cx;
	struct task_struct *t = bpf_get_current_task_btf();
	struct pt_regs___call *regs = (void *)bpf_task_pt_regs(t);
	judged_ctx(&cx);
	if (is_let_be(&cx))
		return 1;
	if (!(t->flags & PF_IO_WORKER) && !(BPF_CORE_READ(t, thread_info.status) & TS_COMPAT) &&
	    BPF_CORE_READ(regs, orig_ax) == SYS_SETSOCKOPT &&
	    inside(&cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup)))
		return 1;
	return refuse_asking(&cx, CALL_OPTION, option);
}

SEC("fmod_ret/security_socket_setsockopt")
int BPF_PROG(weir_group, struct socket *sock, int level, int option)
{
	struct sock *sk = BPF_CORE_READ(sock, sk);
	if (!may_change_socket(sock) || (reads_late(level, option) && !may_set_unread(sk, option)))
		return -EPERM;
	return !asks_kernel(sk, level, option) || may_ask_kernel(CALL_OPTION, option) ? 0 : -EPERM;
}

SEC("fmod_ret/security_socket_getsockopt")
int BPF_PROG(weir_getsockopt, struct socket *sock)
{
	return may_use(sock) ? 0 : -EPERM;
}

/* may_name: the other end of a Unix socket, and who else has it, can ask what it is called and who listens
 * (B100), and sees which of its directions have ended (B143). */
static __always_inline int may_name(struct socket *sock)
{
	struct cgroup_ctx cx;
	struct sock *sk = BPF_CORE_READ(sock, sk);
	if (!sk || BPF_CORE_READ(sk, __sk_common.skc_family) != AF_UNIX)
		return 1;
	judged_ctx(&cx);
	return is_unrestricted(&cx) || arriving() ||
	       (inside(&cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup)) && flows_inside(&cx, sk)) ||
	       refuse_receipt(&cx);
}

/* takes_port: somebody outside has the port, too, that a datagram socket is to be bound to. Who asks him
 * would hear who of them gets the question (B145). */
static __always_inline int takes_port(struct socket *sock, struct sockaddr *address, int length)
{
	struct cgroup_ctx cx;
	struct sock *sk = BPF_CORE_READ(sock, sk);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct dest to = {};
	if ((family != AF_INET && family != AF_INET6) || BPF_CORE_READ(sk, sk_type) != SOCK_DGRAM)
		return 0;
	judged_ctx(&cx);
	if (is_unrestricted(&cx))
		return 0;
	read_address(&to, address, length, family == AF_INET ? AF_INET : 0);
	return to.port && heard_outside(&cx, address_of(sk), &to);
}

SEC("fmod_ret/security_socket_bind")
int BPF_PROG(weir_bind, struct socket *sock, struct sockaddr *address, int length)
{
	if (!may_change_socket(sock) || !may_name(sock))
		return -EPERM;
	return takes_port(sock, address, length) ? -EADDRINUSE : 0;
}

SEC("fmod_ret/security_socket_listen")
int BPF_PROG(weir_listen, struct socket *sock)
{
	return may_change_socket(sock) && may_name(sock) ? 0 : -EPERM;
}

SEC("fmod_ret/security_socket_accept")
int BPF_PROG(weir_accept, struct socket *sock)
{
	return may_change_socket(sock) && may_accept(sock) ? 0 : -EPERM;
}

#define SYS_RECVMMSG 19 /* of socketcall */

/* takes_many: of the messages of recvmmsg the kernel asks about the first only (B93). */
static __always_inline int takes_many(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct pt_regs___call *regs = (void *)bpf_task_pt_regs(t);
	__u32 nr = BPF_CORE_READ(regs, orig_ax);
	if (BPF_CORE_READ(t, thread_info.status) & TS_COMPAT)
		return nr == 337 || nr == 417 ||
		       (nr == 102 && (__u32)BPF_CORE_READ(regs, bx) == SYS_RECVMMSG);
	return nr == 299 || nr == (0x40000000 | 537);
}

/* Room for a message's descriptors, on a connection to somebody outside that is older than the taint: he
 * would hand in a pipe that the container speaks into (B78). Datagrams of his do not come. */
static __always_inline int may_take(struct socket *sock, struct msghdr *msg)
{
	struct cgroup_ctx cx;
	struct sock *sk = BPF_CORE_READ(sock, sk);
	if (BPF_CORE_READ(sk, __sk_common.skc_family) != AF_UNIX || (!msg->msg_controllen && !takes_many()))
		return 1;
	judged_ctx(&cx);
	if (!cx.guarded)
		return 1;
	int connected = BPF_CORE_READ(sk, sk_type) != SOCK_DGRAM;
	if (!note_receipt(connected ? address_of(sk) : 0))
		return 0;
	return !connected || is_unrestricted(&cx) || !leads_outside(&cx, sk) || refuse_receipt(&cx);
}

SEC("fmod_ret/security_socket_recvmsg")
int BPF_PROG(weir_recvmsg, struct socket *sock, struct msghdr *msg)
{
	return may_use(sock) && may_take(sock, msg) ? 0 : -EPERM;
}

SEC("fmod_ret/security_socket_shutdown")
int BPF_PROG(weir_shutdown, struct socket *sock)
{
	return may_change_socket(sock) && may_name(sock) ? 0 : -EPERM;
}

#define PF_SIGNALED 0x400
#define KEY_ALLOC_NOT_IN_QUOTA 0x02 /* as persistent keyrings are; a program's own never are */
#define KEY_ALLOC_UID_KEYRING 0x10
#define KEY_NEED_WRITE 3
#define KEY_NEED_SETATTR 6
#define SETALL 17 /* of semctl */

/* note_owner notes whose an object is that is just being made; 0: it could not. What the kernel makes for
 * itself, with credentials of its own, while it serves the container is nobody's. */
static __always_inline int note_owner(__u64 object, int shared)
{
	struct cgroup_ctx cx;
	struct task_struct *t = bpf_get_current_task_btf();
	judged_ctx(&cx);
	if (cx.container && !shared && BPF_CORE_READ(t, cred) == BPF_CORE_READ(t, real_cred))
		return !bpf_map_update_elem(&owners, &object, &cx.container, BPF_ANY) || is_unrestricted(&cx);
	bpf_map_delete_elem(&owners, &object);
	return 1;
}

static __always_inline int refuse_reach(struct cgroup_ctx *cx, enum call call, __u32 target)
{
	count(COUNT_DENIED_ATTACH);
	emit_peer(cx, REASON_ATTACH, call, 0, target);
	return 0;
}

__noinline int is_clean(__u64 container)
{
	struct cgroup_ctx cx = {.guarded = GUARDED, .taint = carried_to(container)};
	struct state *s = bpf_map_lookup_elem(&cgroups, &container);
	if (s) {
		cx.taint |= s->taint;
		cx.policy = s->policy;
	}
	return is_unrestricted(&cx);
}

/* While a container is tainted, only its own processes use what they alone have used so far, and nothing else
 * (B67). reads: who is in it may look at what others have made. */
__noinline int may_share(__u64 object, enum call call, int reads)
{
	struct cgroup_ctx cx;
	__u64 *owner = bpf_map_lookup_elem(&owners, &object);
	judged_ctx(&cx);
	__u64 id = owner ? *owner & ~(OWNER_SHARED | OWNER_SETS) : 0;
	if (is_own(&cx, owner))
		return 1;
	if (!is_unrestricted(&cx) && !reads)
		return refuse_reach(&cx, call, 0);
	if (!owner || id == cx.container)
		return 1;
	if (is_clean(id) && !(*owner & OWNER_SETS)) {
		if (call != CALL_IPC)
			return 1;
		__u64 before = __sync_fetch_and_or(owner, OWNER_SHARED);
		/* a taint that came meanwhile may not have seen what is noted */
		if (is_clean(id) && !(before & OWNER_SETS))
			return 1;
	}
	count(COUNT_DENIED_ATTACH);
	return 0;
}

/* What is done to another process says something to it (B67). */
static __always_inline int may_reach(enum call call, struct task_struct *target)
{
	struct cgroup_ctx cx;
	__u32 tgid = BPF_CORE_READ(target, tgid);
	if (tgid == bpf_get_current_pid_tgid() >> 32)
		return 1;
	judged_ctx(&cx);
	return is_unrestricted(&cx) || inside(&cx, cgroup_of(target)) ? 1 : refuse_reach(&cx, call, tgid);
}

/* check_kill_permission asks for all that a process sends, not for what the kernel does. Signal 0 sends
 * nothing. With credentials it is a device's, and this task only stood in its way. */
SEC("fmod_ret/security_task_kill")
int BPF_PROG(weir_kill, struct task_struct *p, void *info, int sig, void *cred)
{
	return !sig || cred || may_reach(CALL_SIGNAL, p) ? 0 : -EPERM;
}

SEC("fmod_ret/security_task_setrlimit")
int BPF_PROG(weir_limit, struct task_struct *p)
{
	return may_reach(CALL_LIMIT, p) ? 0 : -EPERM;
}

/* Also which processors it may run on. */
SEC("fmod_ret/security_task_setscheduler")
int BPF_PROG(weir_scheduler, struct task_struct *p)
{
	return may_reach(CALL_PRIORITY, p) ? 0 : -EPERM;
}

SEC("fmod_ret/security_task_setnice")
int BPF_PROG(weir_nice, struct task_struct *p)
{
	return may_reach(CALL_PRIORITY, p) ? 0 : -EPERM;
}

SEC("fmod_ret/security_task_setioprio")
int BPF_PROG(weir_ioprio, struct task_struct *p)
{
	return may_reach(CALL_PRIORITY, p) ? 0 : -EPERM;
}

/* An argument of the hooked function as a number: a global function takes no pointer to what the kernel has.
 */
static __always_inline __u64 argument(void *ctx, __u32 n)
{
	__u64 value = 0;
	bpf_get_func_arg(ctx, n, &value);
	return value;
}

/* Nobody sees the new object before this has returned. */
SEC("fentry/ipc_addid")
int BPF_PROG(weir_ipc_made)
{
	note_owner(argument(ctx, 1), 0);
	return 0;
}

/* ipcperms asks for all that finds, sends, receives, attaches or looks. */
SEC("fmod_ret/security_ipc_permission")
int BPF_PROG(weir_ipc)
{
	return may_share(argument(ctx, 0), CALL_IPC, 0) ? 0 : -EPERM;
}

/* may_change: ipcperms is not asked about removing an object, nor about giving it another user, group or
 * mode, which are numbers of 73 bits that everybody can see (B83). */
__noinline int may_change(__u64 object)
{
	struct cgroup_ctx cx;
	judged_ctx(&cx);
	if (!object || is_unrestricted(&cx) || owns(&cx, object))
		return 1;
	return refuse_reach(&cx, CALL_IPC, 0);
}

/* may_set: the kernel reads what a set of semaphores is set to after it has asked (B121). */
__noinline int may_set(__u64 object)
{
	struct cgroup_ctx cx;
	__u64 *owner = bpf_map_lookup_elem(&owners, &object);
	judged_ctx(&cx);
	if (is_let_be(&cx) ||
	    (is_own(&cx, owner) && !(__sync_fetch_and_or(owner, OWNER_SETS) & OWNER_SHARED)))
		return 1;
	return refuse_reach(&cx, CALL_IPC, 0);
}

SEC("fmod_ret/security_msg_queue_msgctl")
int BPF_PROG(weir_msgctl)
{
	return may_change(argument(ctx, 0)) ? 0 : -EPERM;
}

SEC("fmod_ret/security_sem_semctl")
int BPF_PROG(weir_semctl)
{
	__u64 object = argument(ctx, 0);
	return ((int)argument(ctx, 1) == SETALL ? may_set(object) : may_change(object)) ? 0 : -EPERM;
}

SEC("fmod_ret/security_shm_shmctl")
int BPF_PROG(weir_shmctl)
{
	return may_change(argument(ctx, 0)) ? 0 : -EPERM;
}

/* key_task_permission asks. The lowest bit of a reference is no part of the address. */
SEC("fmod_ret/security_key_permission")
int BPF_PROG(weir_key_use)
{
	__u32 what = argument(ctx, 2);
	return may_share(argument(ctx, 0) & ~1ULL, CALL_KEY,
	                 what != KEY_NEED_WRITE && what != KEY_NEED_SETATTR)
	           ? 0
	           : -EPERM;
}

/* do_coredump takes credentials first, and what dies is marked before. The kernel's core_pattern may name a
 * program that it starts outside, with the name that the process gave itself and all its memory (B67). */
SEC("fmod_ret/security_prepare_creds")
int BPF_PROG(weir_core)
{
	struct cgroup_ctx cx;
	if (!(bpf_get_current_task_btf()->flags & PF_SIGNALED))
		return 0;
	judged_ctx(&cx);
	return is_unrestricted(&cx) ? 0 : -EPERM;
}

/* construct_key has a program of the host look a key up, in the host's network: key.dns_resolver asks for
 * names. The key that authorizes it can be made by nobody else. */
SEC("fmod_ret/security_key_alloc")
int BPF_PROG(weir_key, struct key *key, void *cred, unsigned long flags)
{
	const union {
		char text[16];
		__u64 word[2];
	} authorizes = {".request_key_aut"}; /* the start of it is no other's */
	__u64 name[2] = {};
	/* a user's keyrings are everybody's who runs as that user, whoever came first */
	if (!note_owner((__u64)key, flags & (KEY_ALLOC_UID_KEYRING | KEY_ALLOC_NOT_IN_QUOTA)))
		return -EPERM;
	bpf_probe_read_kernel(name, sizeof(name), BPF_CORE_READ(key, index_key.type, name));
	if (name[0] != authorizes.word[0] || name[1] != authorizes.word[1] ||
	    may_ask_kernel(CALL_REQUEST_KEY, 0))
		return 0;
	return -EPERM;
}

/* The kernel starts a program of the host's that is to load a module, with a name in which some of the words
 * are the asker's: of a digest, a file system, a kind of device, or of what it executes (B68). */
SEC("fmod_ret/security_kernel_module_request")
int BPF_PROG(weir_module)
{
	return may_ask_kernel(CALL_MODULE, 0) ? 0 : -EPERM;
}

/* keyctl_session_to_parent alone asks for such credentials: they go to the parent (B71). Who that is is found
 * out afterwards: where one in the container ends just then, it is somebody outside (B85). */
SEC("fmod_ret/security_cred_alloc_blank")
int BPF_PROG(weir_parent)
{
	return may_ask_kernel(CALL_PARENT, 0) ? 0 : -EPERM;
}

/* A device of the host's that carries what is written to it into a network, owned by a user (B81). */
SEC("fmod_ret/security_tun_dev_open")
int BPF_PROG(weir_tun)
{
	return may_ask_kernel(CALL_TUN, 0) ? 0 : -EPERM;
}

/* AppArmor and SELinux write into the kernel's log what a program says that it is to be, if they know no such
 * thing (B113). A runtime says it of the container's program. */
SEC("fmod_ret/security_setprocattr")
int BPF_PROG(weir_label)
{
	return arriving() || may_ask_kernel(CALL_LABEL, 0) ? 0 : -EPERM;
}

/* Its members differ between kernels, capabilities below 32 do not. */
struct capabilities___any {
};

struct cred___rights {
	struct user_namespace___first *user_ns;
	struct capabilities___any cap_effective;
} __attribute__((preserve_access_index));

#define CAP_NET_ADMIN 12
#define CAP_OPT_NOAUDIT 2 /* who asks only wants to know */

static __always_inline int has_capability(struct cred___rights *cred, int capability)
{
	__u32 all = 0;
	bpf_probe_read_kernel(&all, sizeof(all), __builtin_preserve_access_index(&cred->cap_effective));
	return !BPF_CORE_READ(cred, user_ns, parent) && all >> capability & 1;
}

/* What a container does in networks of user namespaces that it has made nobody hears. */
SEC("fexit/create_user_ns")
int BPF_PROG(weir_userns, struct cred___rights *made, int failed)
{
	if (!failed)
		note_owner((__u64)BPF_CORE_READ(made, user_ns), 0);
	return 0;
}

/* Who administers a network of the machine's, by a program that has more rights than he, makes devices there,
 * links his own network to it, and has the kernel speak or send on for him (B47, B103, B106). So does who
 * administers a network of another user namespace that he has entered: a rootless engine carries what is sent
 * there (B144). In a network of its own user namespace a container does as it likes. */
SEC("fmod_ret/security_capable")
int BPF_PROG(weir_capable, struct cred___rights *cred, struct user_namespace___first *owner, int capability,
             unsigned int options)
{
	struct cgroup_ctx cx;
	if (capability != CAP_NET_ADMIN ||
	    (!BPF_CORE_READ(owner, parent) && !has_capability(cred, capability)) || arriving())
		return 0;
	judged_ctx(&cx);
	if (is_unrestricted(&cx) || owns(&cx, address_of(owner)))
		return 0;
	if (!(options & CAP_OPT_NOAUDIT))
		may_ask_kernel(CALL_NETWORK, 0);
	return -EPERM;
}

struct nsproxy___mounts {
	struct mnt_namespace *mnt_ns;
} __attribute__((preserve_access_index));

struct task_struct___mounts {
	struct nsproxy___mounts *nsproxy;
} __attribute__((preserve_access_index));

struct pid_namespace___first {
	struct task_struct___mounts *child_reaper;
} __attribute__((preserve_access_index));

struct upid___first {
	int nr;
	struct pid_namespace___first *ns;
} __attribute__((preserve_access_index));

struct pid___first {
	struct upid___first numbers[1];
} __attribute__((preserve_access_index));

/* may_mount: a mount has a source, a place and options of one's choice, which everybody reads who has the
 * same mounts; a program that has more rights makes one for an ordinary user (B172). In mounts of its own a
 * container does as it likes: those of the machine are what the first process has. */
static __always_inline int may_mount(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct pid___first *pid = (void *)BPF_CORE_READ(t, thread_pid);
	if (BPF_CORE_READ(t, nsproxy, mnt_ns) !=
	        BPF_CORE_READ(pid, numbers[0].ns, child_reaper, nsproxy, mnt_ns) ||
	    arriving())
		return 1;
	return may_ask_kernel(CALL_MOUNT, 0);
}

SEC("fmod_ret/security_sb_mount")
int BPF_PROG(weir_mount)
{
	return may_mount() ? 0 : -EPERM;
}

SEC("fmod_ret/security_move_mount")
int BPF_PROG(weir_move_mount)
{
	return may_mount() ? 0 : -EPERM;
}

SEC("fmod_ret/security_sb_umount")
int BPF_PROG(weir_umount)
{
	return may_mount() ? 0 : -EPERM;
}

struct sk_buff___sent {
	unsigned int len;
	unsigned char *data;
} __attribute__((preserve_access_index));

struct netlink_head {
	__u32 length;
	__u16 type, flags;
	__u32 seq, port;
};

#define NETLINK_ROUTE 0
#define RTM_NEWLINK 16
#define RTM_GETROUTE 26
#define RTA_IIF 3
#define RTMSG_SIZE 12
#define MAX_ATTRIBUTES 16 /* of a question for a route */
#define NLM_F_CREATE 0x400
#define MAX_MESSAGES 64 /* in one send */

/* asks_arrival: a question for a route is about what comes in by a device, or cannot be read. For a group the
 * kernel then tells the host's multicast router of its source and address, and for other sources that cannot
 * be its own log (B146). Global, verified once. at is the message's address. */
__noinline int asks_arrival(__u64 at, __u32 length)
{
	struct {
		__u16 length, type;
	} attribute;
	__u32 done = sizeof(struct netlink_head) + RTMSG_SIZE;
	for (int i = 0; i < MAX_ATTRIBUTES; i++) {
		if (done + sizeof(attribute) > length)
			return 0;
		if (bpf_probe_read_kernel(&attribute, sizeof(attribute), (void *)(at + done)) ||
		    (attribute.type & 0x3fff) == RTA_IIF || attribute.length < sizeof(attribute))
			return 1;
		done += (attribute.length + 3) & ~3;
	}
	return 1;
}

static __always_inline int speaks(struct sk_buff___sent *skb)
{
	unsigned char *at = BPF_CORE_READ(skb, data);
	__u32 left = BPF_CORE_READ(skb, len);
	for (int i = 0; i < MAX_MESSAGES; i++) {
		struct netlink_head head = {};
		if (left < sizeof(head))
			return 0;
		bpf_probe_read_kernel(&head, sizeof(head), at);
		if ((head.type == RTM_NEWLINK && head.flags & NLM_F_CREATE) ||
		    (head.type == RTM_GETROUTE && asks_arrival((__u64)at, head.length)))
			return 1;
		__u64 length = ((__u64)head.length + 3) & ~3ULL;
		if (length < sizeof(head) || length >= left)
			return 0;
		at += length;
		left -= length;
	}
	return 1;
}

/* speaks: until 7.0, who may make a pair of devices in a network of his own may put one of them, with any
 * name, into anybody's (B108). */
SEC("fmod_ret/security_netlink_send")
int BPF_PROG(weir_device, struct sock *sk, struct sk_buff___sent *skb)
{
	if (BPF_CORE_READ(sk, sk_protocol) != NETLINK_ROUTE || !speaks(skb))
		return 0;
	return may_ask_kernel(CALL_NETWORK, 0) ? 0 : -EPERM;
}

struct xfrm_selector___asks {
	struct in6_addr daddr;
	__be16 dport;
	__u16 family;
	__u8 proto;
} __attribute__((preserve_access_index));

struct xfrm_state___asks {
	struct xfrm_selector___asks sel;
} __attribute__((preserve_access_index));

/* Where the host's IPsec has a policy and no association yet, the first look at a route has the host's key
 * daemon ask its peer for one, for this very address and port: also that of a connect that sends nothing
 * (B75). The kernel asks in its own time for others, too: one that meets a tainted task is asked again. */
SEC("fmod_ret/security_xfrm_state_alloc_acquire")
int BPF_PROG(weir_acquire, struct xfrm_state___asks *x)
{
	struct cgroup_ctx cx;
	struct dest d = {};
	__u32 to[4] = {};
	judged_ctx(&cx);
	if (is_unrestricted(&cx))
		return 0;
	BPF_CORE_READ_INTO(&to, x, sel.daddr);
	if (BPF_CORE_READ(x, sel.family) == AF_INET)
		set_ip4(&d, to[0]);
	else
		set_ip6(&d, to);
	d.port = bpf_ntohs(BPF_CORE_READ(x, sel.dport));
	d.proto = BPF_CORE_READ(x, sel.proto);
	if (is_open(judge(&cx, &d, 0, bpf_get_current_pid_tgid() >> 32)))
		return 0;
	count(COUNT_DENIED_CONNECT);
	emit_peer(&cx, REASON_KERNEL, CALL_IPSEC, 0, 0);
	return -EPERM;
}
