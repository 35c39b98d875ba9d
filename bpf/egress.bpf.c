/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connects, sends and new sockets of guarded processes, judged where every
 * system call, io_uring operation and 32-bit entry ends up: in the security
 * hooks (B20, B41). A connect that needs a verdict is held here. */
#include "ends.h"
#include "mark.h"
#include "names.h"
#include "refuse.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ERESTARTNOINTR 513
#define EPROTONOSUPPORT 93
#define EDESTADDRREQ 89
#define EOPNOTSUPP 95
#define TS_COMPAT 2
#define TCP_ESTABLISHED 1
#define MSG_DONTROUTE 4
#define MSG_FASTOPEN 0x20000000
#define AF_ALG 38 /* ciphers of the kernel */
#define NETLINK_ROUTE 0
#define NETLINK_AUDIT 9
#define TURN_NS 2500000000
#define TURN_RESTARTS 100000 /* an emulated processor does 450000 in that time */
#define MAX_TURNS 16

/* Until when, in ns since boot, each of the calls that are restarted may be: few at a time, or the daemon
 * that is to freeze them would have no processor left. The daemon writes 0 when it has frozen one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_TURNS);
	__type(key, __u32);
	__type(value, __u64);
} turns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct claim_key);
	__type(value, struct claim);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} claims SEC(".maps");

/* Rings have no value type: this names what bpf2go wants. */
const struct record *unused_record __attribute__((unused));
const enum counter *unused_counter __attribute__((unused));

static __always_inline int holdable_call(struct task_struct *t)
{
	/* connect, sendto, sendmsg, sendmmsg, write, writev; their 32-bit numbers mean other calls */
	if (BPF_CORE_READ(t, thread_info.status) & TS_COMPAT)
		return 0;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	__u64 nr = BPF_CORE_READ(regs, orig_ax);
	return nr == 42 || nr == 44 || nr == 46 || nr == 307 || nr == 1 || nr == 20;
}

/* A tracer would see each signal, and could let its tracee go on. */
static __always_inline int holdable(struct cgroup_ctx *cx, struct policy *p)
{
	struct task_struct *t = bpf_get_current_task_btf();
	return is_command(cx, p) && holdable_call(t) && !BPF_CORE_READ(t, ptrace);
}

/* What it runs: for finding its exec event, and for claims. */
static __always_inline void identify(struct record *r)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task *id = bpf_task_storage_get(&tasks, t->group_leader, 0, 0);
	if (!id)
		return;
	r->exec_start = id->exec_start;
	r->exec_tgid = id->exec_tgid;
	r->inode = id->inode;
	r->device = id->device;
	r->argv_hash = id->argv_hash;
}

static __always_inline __u32 take_turn(__u64 now)
{
	for (__u32 i = 0; i < MAX_TURNS; i++) {
		__u32 at = i;
		__u64 *until = bpf_map_lookup_elem(&turns, &at);
		if (!until)
			return 0;
		__u64 was = *(volatile __u64 *)until;
		if (was < now && __sync_val_compare_and_swap(until, was, now + TURN_NS) == was)
			return i + 1;
	}
	return 0;
}

/* Nobody sees a call that is restarted; but a handler for SIGCONT would run each time. */
static __always_inline __u32 begin_wait(struct hold *h)
{
	struct task_struct *t = bpf_get_current_task_btf();
	__u64 handler = (__u64)BPF_CORE_READ(t, sighand, action[SIGCONT - 1].sa.sa_handler);
	h->since = bpf_ktime_get_boot_ns();
	h->restarts = 0;
	h->turn = handler > 1 ? 0 : take_turn(h->since);
	return h->turn ? HOLD_RESTARTS : HOLD_STOPPED;
}

/* A turn takes as long again while the machine has not let the call run: then it did not let the daemon
 * come, either. */
static __always_inline int is_over(struct hold *h)
{
	__u64 now = bpf_ktime_get_boot_ns();
	if (now - h->since < TURN_NS)
		return 0;
	__u32 at = h->turn - 1;
	__u64 *until = bpf_map_lookup_elem(&turns, &at);
	if (h->restarts >= TURN_RESTARTS || !until)
		return 1;
	h->since = now;
	*until = now + TURN_NS;
	return 0;
}

/* Sends the call through the kernel's way out to user space and back. SIGCONT takes the SIGSTOP before it
 * away: nothing stops and no parent is told, but a signal seems to be pending, so the call is restarted. When
 * the daemon does not come in time, the process stops. The signals go to this very thread: one that waits for
 * the whole process already would not be sent again, and who returns to user space with no signal of its own
 * would see the restart code as an error. */
static __always_inline int restart(struct hold *h, struct hold_key *key)
{
	bpf_send_signal_thread(SIGSTOP);
	__u32 state = h->state;
	h->restarts++;
	if (state == HOLD_RESTARTS && is_over(h))
		state = __sync_val_compare_and_swap((__u32 *)&h->state, HOLD_RESTARTS, HOLD_STOPPED) ==
		                HOLD_RESTARTS
		            ? HOLD_STOPPED
		            : HOLD_FROZEN;
	/* who was frozen or answered meanwhile is not continued by anybody else */
	if (state != HOLD_STOPPED || bpf_map_lookup_elem(&held, key) != h)
		bpf_send_signal_thread(SIGCONT);
	return RESTART;
}

/* Puts the question, once per process and destination; and once more when a process that was frozen for it
 * goes on with its call: it was thawed for another thread's verdict, or by somebody who may. */
__noinline int question(struct cgroup_ctx *cx, struct dest *d, __u64 cookie)
{
	if (!cx || !d)
		return REFUSE;
	struct policy *p = policy_of(cx);
	if (!p)
		return REFUSE;
	struct hold_key key = {.tgid = bpf_get_current_pid_tgid() >> 32, .dest = *d};
	struct hold hold = {.start = started(), .since = bpf_ktime_get_boot_ns()};
	struct hold *old = bpf_map_lookup_elem(&held, &key);
	if (old && old->start == hold.start) {
		if (old->state == HOLD_FAILED)
			return REFUSE;
		/* where the machine stood still, the daemon may come yet */
		if (old->state == HOLD_RESTARTS && is_alone() && old->restarts < TURN_RESTARTS)
			return restart(old, &key);
		if (!is_command(
		        cx,
		        p)) /* nobody answers any more: the next daemon is to know that it does not wait */
			old->state = HOLD_FAILED;
		if (old->state == HOLD_FAILED || !holdable(cx, p))
			return REFUSE;
		if (old->state != HOLD_FROZEN)
			return restart(old, &key);
		__u32 state = begin_wait(old);
		if (__sync_val_compare_and_swap((__u32 *)&old->state, HOLD_FROZEN, state) != HOLD_FROZEN)
			return restart(old, &key);
	} else if (is_refused(
	               &key, hold.start)) { /* looked for last: a verdict is noted before its question goes */
		return REFUSE;
	} else {
		if (old)
			bpf_map_delete_elem(&held, &key);
		if (holdable(cx, p))
			hold.state = begin_wait(&hold);
		int failed = bpf_map_update_elem(&held, &key, &hold, BPF_NOEXIST);
		old = bpf_map_lookup_elem(&held, &key);
		if (!old) {
			count(COUNT_LOST_ASK);
			emit(cx, d, RECORD_DENY, REASON_FULL, cookie);
			return REFUSE;
		}
		if (failed) { /* another thread was first */
			__u32 at = hold.turn - 1;
			__u64 *turn = hold.turn ? bpf_map_lookup_elem(&turns, &at) : 0;
			if (turn)
				*turn = 0;
			return hold.state == HOLD_FAILED || old->state == HOLD_FAILED ? REFUSE
			                                                              : restart(old, &key);
		}
	}
	struct record *r = bpf_ringbuf_reserve(&hold_reqs, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_ASK);
		bpf_map_delete_elem(&held, &key);
		emit(cx, d, RECORD_DENY, REASON_FULL, cookie);
		return REFUSE;
	}
	int held = old->state != HOLD_FAILED;
	describe(r, cx, held ? RECORD_HOLD : RECORD_ASK, REASON_TAINTED);
	describe_current(r);
	identify(r);
	r->dest = *d;
	r->cookie = cookie;
	if (held) {
		count(COUNT_HELD);
		restart(old, &key);
	}
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return held ? RESTART : REFUSE;
}

static __always_inline long open_dest(__u64 grant, const struct dest *d)
{
	struct grant_dest key = {.grant = grant, .dest = *d};
	enum dest_use use = DEST_OPEN;
	return bpf_map_update_elem(&grant_dests, &key, &use, BPF_ANY);
}

static __always_inline long mark_socket(__u64 cookie, __u64 grant, const struct dest *d)
{
	struct mark m = {.grant = grant, .dest = *d};
	return bpf_map_update_elem(&socks, &cookie, &m, BPF_ANY);
}

__noinline int take(struct cgroup_ctx *cx, struct claim_key *at, __u64 cookie)
{
	if (!cx || !at)
		return 0;
	struct claim_key key = *at; /* 6.1 takes map keys from the stack only */
	struct claim *found = bpf_map_lookup_elem(&claims, &key);
	if (!found)
		return 0;
	/* read before it is deleted; a copy would need more stack than there is */
	__u64 now = bpf_ktime_get_boot_ns(), id = found->grant, until = found->expires;
	struct grant g = {
	    .expires = now + found->ttl, .bytes = found->bytes, .owner = bpf_get_current_pid_tgid() >> 32};
	g.taint = found->taint;
	/* of two that try at once, only one deletes: used once (G16) */
	if (bpf_map_delete_elem(&claims, &key) || until <= now || (cx->taint & ~g.taint))
		return 0;
	struct grant *other = bpf_map_lookup_elem(&grants, &id);
	if (other && other->owner != g.owner)
		return 0;
	if (!other && bpf_map_update_elem(&grants, &id, &g, BPF_NOEXIST)) {
		other =
		    bpf_map_lookup_elem(&grants, &id); /* both claims of one approval were taken at once */
		if (!other || other->owner != g.owner)
			return 0;
	}
	if (open_dest(id, &key.dest) || mark_socket(cookie, id, &key.dest))
		return 0;
	cx->grant = id;
	emit(cx, &key.dest, RECORD_CLAIM, REASON_GRANTED, cookie);
	return 1;
}

#define MAX_THREADS (1 << 16)

/* The threads of a process, one by one; the list ends at last. */
struct threads {
	__u64 at;
	__u64 last;
	__u32 traced;
};

static long next_traced(__u32 i, struct threads *all)
{
	struct task_struct *t = (void *)(all->at - bpf_core_field_offset(struct task_struct, thread_node));
	if (!all->at || all->at == all->last)
		return 1;
	all->traced |= BPF_CORE_READ(t, ptrace);
	all->at = (__u64)BPF_CORE_READ(t, thread_node.next);
	return all->traced != 0;
}

/* is_traced: somebody traces a thread of the current process, and so can have all of it do what he likes. */
__noinline int is_traced(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct signal_struct *own = BPF_CORE_READ(t, signal);
	struct threads all = {.at = (__u64)BPF_CORE_READ(own, thread_head.next),
	                      .last = (__u64)own + bpf_core_field_offset(struct signal_struct, thread_head)};
	return bpf_loop(MAX_THREADS, next_traced, &all, 0) >= MAX_THREADS || all.traced;
}

/* An approval that came after the call had failed, claimed by the next try, as long as that runs what was
 * asked about for the same user, and nobody else decides what it does (B30). */
__noinline int claimed(struct cgroup_ctx *cx, struct dest *d, __u64 cookie)
{
	if (!cx || !d)
		return 0;
	struct claim_key key = {.container = cx->container, .dest = *d, .kind = CLAIM_PROCESS};
	struct task_struct *t = bpf_get_current_task_btf();
	if (is_traced())
		return 0;
	t = t->group_leader;
	key.id = t->start_boottime;
	key.tag = t->tgid;
	key.uid = bpf_get_current_uid_gid();
	struct task *id = bpf_task_storage_get(&tasks, t, 0, 0);
	if (id) {
		key.device = id->device;
		key.tag |= (id->inode ^ id->argv_hash) << 32;
	}
	if (take(cx, &key, cookie))
		return 1;
	if (!id || !id->argv_hash)
		return 0;
	key.kind = CLAIM_COMMAND;
	key.id = id->inode;
	key.tag = id->argv_hash;
	return take(cx, &key, cookie);
}

/* What a grant lets through is marked, for the packets of a socket older than it. */
static __always_inline void mark(struct cgroup_ctx *cx, const struct dest *d, __u64 cookie)
{
	if (!cx->grant || !cookie)
		return;
	mark_socket(cookie, cx->grant, d);
}

__noinline int decide(struct cgroup_ctx *cx, struct dest *d, __u64 cookie, __u32 counter, __u32 ask)
{
	if (!cx || !d)
		return REFUSE;
	struct mark *m = bpf_map_lookup_elem(&socks, &cookie);
	__u64 marked = m ? m->grant : 0;
	int reason = judge(cx, d, marked, bpf_get_current_pid_tgid() >> 32);
	if (reason == REASON_GRANTED && cx->grant != marked)
		mark(cx, d, cookie);
	if (is_open(reason)) {
		if (counter == COUNT_DENIED_CONNECT || reason == REASON_OBSERVED)
			emit(cx, d, RECORD_CONNECT, reason, cookie);
		return reason == REASON_LISTED ? PASS_LISTED : PASS;
	}
	if (reason == REASON_TAINTED && d->proto == IPPROTO_UDP && d->port == PORT_HTTPS)
		reason = REASON_QUIC; /* clients fall back to TCP */
	if (reason == REASON_TAINTED && ask)
		return UNSETTLED;
	count(counter);
	return refuse(cx, d, cookie, reason);
}

/* Apart from decide, or the calls would need more stack than a program has. */
static __always_inline int settle(struct cgroup_ctx *cx, struct dest *d, __u64 cookie, __u32 counter,
                                  __u32 ask)
{
	int outcome = decide(cx, d, cookie, counter, ask);
	if (outcome != UNSETTLED)
		return outcome;
	if (claimed(cx, d, cookie))
		return PASS;
	outcome = question(cx, d, cookie);
	if (outcome == REFUSE)
		count(counter);
	return outcome;
}

static __always_inline int finish(int outcome)
{
	if (outcome == PASS || outcome == PASS_LISTED)
		ANSWER(0);
	if (outcome == RESTART)
		ANSWER(-ERESTARTNOINTR);
	ANSWER(-EPERM);
}

static __always_inline int is_sealed(struct cgroup_ctx *cx)
{
	struct policy *p = policy_of(cx);
	return !p || p->mode == MODE_SEAL;
}

static __always_inline int is_observed(struct cgroup_ctx *cx)
{
	struct policy *p = policy_of(cx);
	return p && p->mode == MODE_OBSERVE;
}

/* free: nothing stands against cx, by taint, mode or depth. */
static __always_inline int is_free(struct cgroup_ctx *cx)
{
	return !cx->guarded || (!cx->taint && !cx->deep && !is_sealed(cx));
}

/* deny, or only say so. */
static __always_inline int deny(struct cgroup_ctx *cx, struct dest *d, __u64 cookie, __u32 counter,
                                __u32 reason)
{
	if (is_observed(cx)) {
		emit(cx, d, RECORD_CONNECT, REASON_OBSERVED, cookie);
		return PASS;
	}
	count(counter);
	return refuse(cx, d, cookie, reason);
}

static __always_inline int allowed_type(__u16 family, int type, int proto)
{
	if (family == AF_UNIX)
		return 1;
	if (family == AF_NETLINK)
		return proto == NETLINK_ROUTE;
	if (family != AF_INET && family != AF_INET6)
		return 0;
	return (type == SOCK_STREAM && (proto == 0 || proto == IPPROTO_TCP)) ||
	       (type == SOCK_DGRAM && (proto == 0 || proto == IPPROTO_UDP));
}

/* brings_unseen: where untrusted destinations taint, no check would see what comes by a socket of such a
 * family (B122). */
static __always_inline int brings_unseen(struct cgroup_ctx *cx, int family)
{
	struct policy *p = policy_of(cx);
	return p && p->flags & POLICY_TRUST && family != AF_UNIX && family != AF_INET && family != AF_INET6 &&
	       family != AF_NETLINK && family != AF_ALG;
}

/* Netlink also carries messages from one process to another: only the kernel,
 * port 0 and no group, is asked (B19). */
static __always_inline int netlink_to_kernel(struct sock *sk, const void *name, int length)
{
	__u32 to[3] = {}; /* struct sockaddr_nl: family, port, groups */
	if (!name) {
		struct netlink_sock *nl = (struct netlink_sock *)sk;
		return !BPF_CORE_READ(nl, dst_portid) && !BPF_CORE_READ(nl, dst_group);
	}
	if (length < sizeof(to) || bpf_probe_read_kernel(to, sizeof(to), name))
		return 0;
	return !to[1] && !to[2];
}

SEC("fmod_ret/security_socket_create")
int BPF_PROG(weir_create, int family, int type, int protocol, int kern)
{
	struct cgroup_ctx cx;
	if (kern || outside())
		ANSWER(0);
	walk_current(&cx);
	if (escaped(cx.container))
		return finish(REFUSE);
	if (!cx.guarded)
		return finish(PASS);
	if (allowed_type(family, type, protocol) || (is_free(&cx) && !brings_unseen(&cx, family)))
		ANSWER(0);
	/* family and type stand in the record: a socket has no destination yet */
	struct dest d = {.addr = {family, type}, .proto = protocol};
	if (deny(&cx, &d, 0, COUNT_DENIED_SOCKET, REASON_FAMILY) == PASS)
		ANSWER(0);
	/* PAM lets sudo and su go on when the kernel has no audit, not when it forbids it */
	if (family == AF_NETLINK && protocol == NETLINK_AUDIT)
		ANSWER(-EPROTONOSUPPORT);
	ANSWER(-EPERM);
}

static __always_inline __u64 netns_of(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
}

struct sock_common___way {
	int skc_bound_dev_if;
} __attribute__((preserve_access_index));

struct sock___way {
	struct sock_common___way __sk_common;
	__u32 sk_mark;
} __attribute__((preserve_access_index));

/* As of packets: they would be dropped (B89). */
static __always_inline int chose_way(struct sock *sk, const struct dest *d)
{
	struct sock___way *way = (void *)sk;
	return !is_loopback(d) && !is_link_local(d) &&
	       (BPF_CORE_READ(way, __sk_common.skc_bound_dev_if) || BPF_CORE_READ(way, sk_mark) ||
	        passes_gateways(sk));
}

struct inet_sock___old { /* until 6.6 */
	__u8 freebind : 1;
	__u8 transparent : 1;
} __attribute__((preserve_access_index));

struct inet_sock___flags {
	long unsigned int inet_flags;
} __attribute__((preserve_access_index));

struct sock___locks {
	__u8 sk_userlocks : 4;
} __attribute__((preserve_access_index));

#define INET_FLAGS_FREEBIND 11
#define INET_FLAGS_TRANSPARENT 15
#define SOCK_BINDADDR_LOCK 4

/* bears_foreign: what a socket sends has, or may have, a source that is not this machine's. The host's rules
 * may write another in its place, or answer it, before weir_packet sees it (B142). at is its address. */
__noinline int bears_foreign(__u64 at)
{
	struct inet_sock___old *old = (void *)at;
	struct inet_sock___flags *now = (void *)at;
	struct dest own = {};
	if (bpf_core_field_exists(now->inet_flags)) {
		if (BPF_CORE_READ(now, inet_flags) & (1 << INET_FLAGS_FREEBIND | 1 << INET_FLAGS_TRANSPARENT))
			return 1;
	} else if (BPF_CORE_READ_BITFIELD_PROBED(old, freebind) ||
	           BPF_CORE_READ_BITFIELD_PROBED(old, transparent)) {
		return 1;
	}
	if (!(BPF_CORE_READ_BITFIELD_PROBED((struct sock___locks *)at, sk_userlocks) & SOCK_BINDADDR_LOCK))
		return 0; /* the kernel chooses */
	own_source((struct sock *)at, &own);
	return is_elsewhere(&own, (struct sock *)at);
}

SEC("fmod_ret/security_socket_connect")
int BPF_PROG(weir_connect, struct socket *sock, struct sockaddr *address, int addrlen)
{
	struct cgroup_ctx cx;
	if (outside())
		ANSWER(0);
	walk_current(&cx);
	if (escaped(cx.container))
		return finish(REFUSE);
	if (!cx.guarded)
		return finish(PASS);
	struct sock *sk = sock->sk;
	if (!sk)
		ANSWER(0);
	__u64 cookie = bpf_get_socket_cookie(sk);
	__u16 family = sk->__sk_common.skc_family;
	int proto = sk->sk_protocol; /* MPTCP's does not fit into dest */
	struct dest d = {.proto = proto};
	if (family == AF_UNIX) {
		/* judged with its peer at hand; but who else has the socket can ask for the peer's name
		 * (B100) */
		if (is_free(&cx) || arriving() ||
		    (inside(&cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup)) && heard_inside(&cx, sk)))
			ANSWER(0);
		d.addr[0] = family;
		return finish(deny(&cx, &d, cookie, COUNT_DENIED_UNIX, REASON_OUTSIDE));
	}
	__u16 type = sk->sk_type;
	if (family != AF_INET && family != AF_INET6) {
		/* what is sent without a name goes there, also where that changes once it was judged */
		if (is_free(&cx) ||
		    (allowed_type(family, type, proto) && netlink_to_kernel(sk, address, addrlen)))
			ANSWER(0);
		d.addr[0] = family;
		return finish(deny(&cx, &d, cookie, COUNT_DENIED_CONNECT, REASON_FAMILY));
	}
	if (!is_free(&cx) && !inside(&cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup)))
		return finish(deny(&cx, &d, cookie, COUNT_DENIED_CONNECT, REASON_OUTSIDE));
	int read = read_address(&d, address, addrlen, 0);
	/* sends nothing: the first send is judged; but where a name leads is written into the connect */
	if (read == 0 || (type == SOCK_DGRAM && proto == IPPROTO_UDP &&
	                  (is_free(&cx) || read < 0 || !d.port || !is_synthetic(&cx, &d))))
		ANSWER(0);
	if (!is_free(&cx) && (read < 0 || !allowed_type(family, type, proto)))
		return finish(deny(&cx, &d, cookie, COUNT_DENIED_CONNECT, REASON_UNREADABLE));
	if (is_free(&cx)) {
		emit(&cx, &d, RECORD_CONNECT, REASON_UNTAINTED, cookie);
		ANSWER(0);
	}
	if (chose_way(sk, &d) || bears_foreign(address_of(sk)))
		return finish(deny(&cx, &d, cookie, COUNT_DENIED_CONNECT, REASON_OUTSIDE));
	if (resolver_for(&cx, &d, netns_of(sk), 0))
		ANSWER(0); /* the connect is rewritten; else weir_packet drops it */
	return finish(settle(&cx, &d, cookie, COUNT_DENIED_CONNECT, 1));
}

/* It has a name of its own, which may be rewritten. TCP ignores one but in fast open. */
static __always_inline int is_addressed(struct sock *sk, struct msghdr *msg)
{
	return msg->msg_name && sk->sk_type == SOCK_DGRAM;
}

/* What it sends may go where somebody else, who shares the socket, has had it judged: with a connect that
 * waits for the data of a fast open, or behind what waits in the socket for more. */
static __always_inline int joins(struct sock *sk, struct msghdr *msg)
{
	if (sk->sk_type == SOCK_STREAM)
		return msg->msg_flags & MSG_FASTOPEN;
	return BPF_CORE_READ((struct udp_sock *)sk, pending);
}

/* Where a message goes. 1: read, 0: it is not addressed, -1: unreadable. What a datagram socket is connected
 * to is judged with any port; while it is being connected, it is not (B141). */
static __always_inline int read_target(struct dest *d, struct sock *sk, struct msghdr *msg)
{
	__u16 family = sk->__sk_common.skc_family;
	void *name = msg->msg_name;
	int read = 0;
	if (is_addressed(sk, msg))
		read = read_address(d, name, msg->msg_namelen, family == AF_INET ? AF_INET : 0);
	if (read)
		return read;
	int connected = sk->__sk_common.skc_state == TCP_ESTABLISHED;
	barrier();
	read_peer(d, sk);
	return sk->sk_type == SOCK_DGRAM ? connected && !is_any(d) : d->port != 0;
}

SEC("fmod_ret/security_socket_sendmsg")
int BPF_PROG(weir_sendmsg, struct socket *sock, struct msghdr *msg, int size)
{
	struct cgroup_ctx cx;
	if (outside())
		ANSWER(0);
	struct allow_key now = {.epoch = current_epoch()};
	struct allow_entry *last = 0;
	struct dest *d = &now.dest;
	walk_current(&cx);
	if (escaped(cx.container))
		return finish(REFUSE);
	if (!cx.guarded)
		return finish(PASS);
	struct sock *sk = sock->sk;
	if (is_free(&cx) || !sk)
		ANSWER(0);
	__u16 family = sk->__sk_common.skc_family, type = sk->sk_type, proto = sk->sk_protocol;
	int read = 0, way = 0;
	d->proto = proto;
	if ((family == AF_INET || family == AF_INET6) && is_plain(type, proto)) {
		read = read_target(d, sk, msg);
		if (joins(sk, msg)) {
			__u64 own = bpf_get_socket_cookie(sk);
			if (deny(&cx, d, own, COUNT_DENIED_SEND, REASON_UNREADABLE) == PASS)
				ANSWER(0);
			ANSWER(-EOPNOTSUPP); /* clients do without, then */
		}
		now.sender = cx.cgroup;
		now.socket = sk->sk_cgrp_data.cgroup->kn->id;
		last = find_allowed(&now);
		way = type == SOCK_DGRAM &&
		      ((msg->msg_flags & MSG_DONTROUTE && !is_loopback(d)) || bears_foreign(address_of(sk)));
		if (read > 0 && !way && was_allowed(last, &now, 0))
			ANSWER(0);
	}
	__u64 cookie = bpf_get_socket_cookie(sk);
	if (way || !inside(&cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup))) {
		if (family == AF_UNIX && arriving())
			ANSWER(0);
		return finish(deny(&cx, d, cookie, COUNT_DENIED_SEND, REASON_OUTSIDE));
	}
	if (!allowed_type(family, type, proto)) {
		d->addr[0] = family;
		return finish(deny(&cx, d, cookie, COUNT_DENIED_SEND, REASON_FAMILY));
	}
	if (family == AF_UNIX) {
		if (type == SOCK_DGRAM || flows_inside(&cx, sk)) /* weir_unix_send judges each datagram */
			ANSWER(0);
		d->addr[0] = family;
		return finish(deny(&cx, d, cookie, COUNT_DENIED_UNIX, REASON_OUTSIDE));
	}
	if (family == AF_NETLINK) {
		if (netlink_to_kernel(sk, msg->msg_name, msg->msg_namelen))
			ANSWER(0);
		d->addr[0] = family;
		return finish(deny(&cx, d, cookie, COUNT_DENIED_SEND, REASON_FAMILY));
	}
	if (!last)
		read = read_target(d, sk, msg);
	if (read < 0)
		return finish(deny(&cx, d, cookie, COUNT_DENIED_SEND,
		                   read == BY_DEVICE ? REASON_OUTSIDE : REASON_UNREADABLE));
	if (!read) { /* not connected: the kernel refuses; but a datagram socket may be, when it looks */
		if (type == SOCK_DGRAM)
			ANSWER(-EDESTADDRREQ);
		ANSWER(0);
	}
	if (is_addressed(sk, msg) && resolver_for(&cx, d, netns_of(sk), 1))
		ANSWER(0);
	int outcome = settle(&cx, d, cookie, COUNT_DENIED_SEND, type == SOCK_DGRAM);
	if (last && outcome == PASS_LISTED)
		cache_allowed(last, &now, 0);
	return finish(outcome);
}
