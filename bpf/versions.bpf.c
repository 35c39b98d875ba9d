/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs at functions that only some kernels have. */
#include "ends.h"
#include "refuse.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* sends_on: what the current process, in cx, puts on a socket would be let through by weir_sendmsg, whoever
 * shares that. Of UDP it never is: a datagram goes where another thread connects it meanwhile (B115). */
static __always_inline int sends_on(struct cgroup_ctx *cx, struct sock *sk, struct dest *d)
{
	__u16 family = sk->__sk_common.skc_family;
	int here = inside(cx, BPF_CORE_READ(sk, sk_cgrp_data.cgroup));
	if (family == AF_UNIX) {
		d->addr[0] = family;
		return here && flows_inside(cx, sk);
	}
	if (family != AF_INET && family != AF_INET6)
		return 0;
	d->proto = sk->sk_protocol;
	read_peer(d, sk);
	__u64 cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	struct mark *m = bpf_map_lookup_elem(&socks, &cookie);
	return here && sk->sk_type == SOCK_STREAM && d->proto == IPPROTO_TCP &&
	       is_open(judge(cx, d, m ? m->grant : 0, bpf_get_current_pid_tgid() >> 32));
}

/* Before Linux 6.5, splice and sendfile put pages on a socket past weir_sendmsg. Nothing can be refused here;
 * but who is killed here sends nothing: splice_from_pipe_next looks for a signal before it takes a page. */
SEC("fentry/generic_splice_sendpage")
int BPF_PROG(weir_splice, void *pipe, struct file *out)
{
	struct cgroup_ctx cx;
	struct dest d = {};
	if (outside())
		return 0;
	judged_ctx(&cx);
	if (is_unrestricted(&cx))
		return 0;
	struct socket *sock = bpf_sock_from_file(out);
	struct sock *sk = sock ? sock->sk : 0;
	if (sk && sends_on(&cx, sk, &d))
		return 0;
	bpf_send_signal(SIGKILL);
	count(COUNT_DENIED_SEND);
	refuse(&cx, &d, 0, REASON_OUTSIDE);
	return 0;
}

/* As weir_label; since Linux 6.8. */
SEC("fmod_ret/security_setselfattr")
int BPF_PROG(weir_self_label)
{
	return arriving() || may_ask_kernel(CALL_LABEL, 0) ? 0 : -EPERM;
}
