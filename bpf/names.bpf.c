/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses that are written in place of others, at the sockets' edge: the resolver's for those of name
 * servers, and for one that stands for a name, the one that the name leads to. Whether that may go out is
 * judged in the security hooks before, and for each packet afterwards. */
#include "listener.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ALLOW 1
#define DENY 0

/* What a socket asked for, and what it got: it goes on seeing what it asked for. */
struct orig_dst {
	struct dest asked;
	struct dest got;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct orig_dst);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} orig_dsts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fake_target_key);
	__type(value, struct fake_target);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fake_targets SEC(".maps");

static __always_inline void write_dest(struct bpf_sock_addr *ctx, const struct dest *d, int ip4)
{
	const __u32 *a = (const __u32 *)d->addr;
	if (ip4) {
		ctx->user_ip4 = a[3];
	} else {
		ctx->user_ip6[0] = a[0];
		ctx->user_ip6[1] = a[1];
		ctx->user_ip6[2] = a[2];
		ctx->user_ip6[3] = a[3];
	}
	ctx->user_port = bpf_htons(d->port);
}

static __always_inline int write_target(struct bpf_sock_addr *ctx, const struct dest *asked,
                                        const struct dest *got, int ip4)
{
	struct orig_dst *o =
	    ctx->sk ? bpf_sk_storage_get(&orig_dsts, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	if (o) {
		o->asked = *asked;
		o->got = *got;
	}
	write_dest(ctx, got, ip4);
	return ALLOW;
}

/* find_target says where a name leads under a grant, and lets the grant's sockets go there. */
__noinline int find_target(struct cgroup_ctx *cx, struct dest *asked, struct dest *got, __u64 grant)
{
	if (!cx || !asked || !got)
		return 0;
	struct fake_target_key key = {.grant = grant, .container = cx->container};
	__builtin_memcpy(key.addr, asked->addr, sizeof(key.addr));
	struct fake_target *target = bpf_map_lookup_elem(&fake_targets, &key);
	if (!target)
		return 0;
	*got = *asked;
	__builtin_memcpy(got->addr, target->addr, sizeof(got->addr));
	if (is_mapped(asked) != is_mapped(got))
		return 0; /* a socket has one family */
	if (!grant)
		return 1;
	struct grant_dest open = {.grant = grant, .dest = *got};
	enum dest_use use = DEST_OPEN;
	bpf_map_update_elem(&grant_dests, &open, &use, BPF_NOEXIST); /* a claim opens one destination */
	return bpf_map_lookup_elem(&grant_dests, &open) != 0;
}

/* redirect_to_target writes where a name leads. sends: nothing goes out but by this. */
static __always_inline int redirect_to_target(struct bpf_sock_addr *ctx, struct cgroup_ctx *cx,
                                              struct dest *d, int ip4, int sends)
{
	struct dest got = {};
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct mark *m = bpf_map_lookup_elem(&socks, &cookie);
	__u64 marked = m ? m->grant : 0, grant = 0;
	int reason = judge(cx, d, marked, bpf_get_current_pid_tgid() >> 32);
	if (reason == REASON_GRANTED)
		grant = open_grant(cx->grant, d, 1, cx->taint) ? cx->grant : marked;
	else if (reason != REASON_UNTAINTED && reason != REASON_OBSERVED)
		return sends ? DENY : ALLOW;
	if (find_target(cx, d, &got, grant))
		return write_target(ctx, d, &got, ip4);
	if (!sends)
		return ALLOW;
	count(COUNT_DENIED_CONNECT);
	emit(cx, d, RECORD_DENY, REASON_UNRESOLVED, cookie); /* the next try finds it */
	return DENY;
}

/* redirect_to_resolver writes the resolver's address in place of a name server's, unless that may be asked
 * itself. */
static __always_inline int redirect_to_resolver(struct bpf_sock_addr *ctx, struct cgroup_ctx *cx,
                                                struct dest *d, int ip4)
{
	int port = resolver_for(cx, d, bpf_get_netns_cookie(ctx), 0);
	if (!port)
		return ALLOW;
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct mark *m = bpf_map_lookup_elem(&socks, &cookie);
	int reason = judge(cx, d, m ? m->grant : 0, bpf_get_current_pid_tgid() >> 32);
	if (reason == REASON_LOOPBACK && listener(ctx, cx, d) == LISTENS_OWN)
		return ALLOW;
	if (reason != REASON_TAINTED && reason != REASON_LOOPBACK)
		return ALLOW;
	struct dest got = {.port = port, .proto = d->proto};
	if (is_mapped(d))
		set_ip4(&got, bpf_htonl(0x7f000001));
	else
		got.addr[15] = 1;
	return write_target(ctx, d, &got, ip4);
}

static __always_inline int redirect(struct bpf_sock_addr *ctx, int ip4, int sends)
{
	struct cgroup_ctx cx;
	struct dest d = {};
	walk_current(&cx);
	if (!cx.guarded)
		return ALLOW;
	read_dest(ctx, &d, ip4);
	if (d.port == PORT_DNS && cx.taint)
		return redirect_to_resolver(ctx, &cx, &d, ip4);
	if (!is_synthetic(&cx, &d))
		return ALLOW;
	return redirect_to_target(ctx, &cx, &d, ip4, sends || ctx->type == SOCK_STREAM);
}

SEC("cgroup/connect4")
int weir_name4(struct bpf_sock_addr *ctx)
{
	return redirect(ctx, 1, 0);
}

SEC("cgroup/connect6")
int weir_name6(struct bpf_sock_addr *ctx)
{
	return redirect(ctx, 0, 0);
}

SEC("cgroup/sendmsg4")
int weir_name_send4(struct bpf_sock_addr *ctx)
{
	return redirect(ctx, 1, 1);
}

SEC("cgroup/sendmsg6")
int weir_name_send6(struct bpf_sock_addr *ctx)
{
	return redirect(ctx, 0, 1);
}

#define ETH_P_IP 0x0800
#define IP4_WORDS 5 /* of a header without options */
#define IP6_WORDS 10
#define TCP_FLAGS 3 /* word of the header */
#define TCP_SYN 0x200
#define TCP_ACK 0x1000

/* begins: the packet, whose transport header is at an offset, begins a connection or is a datagram. */
static __always_inline int begins(struct __sk_buff *skb, __u32 offset, __u32 proto)
{
	__u32 flags;
	return proto != IPPROTO_TCP || (!bpf_skb_load_bytes(skb, offset + TCP_FLAGS * 4, &flags, 4) &&
	                                (flags & (TCP_SYN | TCP_ACK)) == TCP_SYN);
}

/* What a packet of the resolver's says of its two ends. */
struct heads {
	__u32 words[IP6_WORDS + 1]; /* the header without options, and the ports */
	__u32 ip4;
};

static __always_inline int read_heads(struct heads *h, struct __sk_buff *skb)
{
	h->ip4 = skb->protocol == bpf_htons(ETH_P_IP);
	return bpf_skb_load_bytes(skb, 0, h->words, h->ip4 ? (IP4_WORDS + 1) * 4 : sizeof(h->words));
}

/* peer_of is the socket in this network namespace that a packet comes from, or goes to. */
static __always_inline struct bpf_sock *peer_of(struct __sk_buff *skb, const struct heads *h, __u32 proto,
                                                int comes)
{
	struct bpf_sock_tuple tuple = {};
	__u32 size = h->ip4 ? sizeof(tuple.ipv4) : sizeof(tuple.ipv6);
	__u32 ports = h->words[h->ip4 ? IP4_WORDS : IP6_WORDS];
	__u16 from = ports, to = ports >> 16;
	if (h->ip4) {
		tuple.ipv4.saddr = h->words[comes ? 4 : 3];
		tuple.ipv4.daddr = h->words[comes ? 3 : 4];
		tuple.ipv4.sport = comes ? to : from;
		tuple.ipv4.dport = comes ? from : to;
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, h->words + (comes ? 6 : 2), sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, h->words + (comes ? 2 : 6), sizeof(tuple.ipv6.daddr));
		tuple.ipv6.sport = comes ? to : from;
		tuple.ipv6.dport = comes ? from : to;
	}
	return proto == IPPROTO_TCP ? bpf_sk_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0)
	                            : bpf_sk_lookup_udp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
}

static __always_inline struct bpf_sock *full_socket(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	return sk ? bpf_sk_fullsock(sk) : 0;
}

/* The resolver hears the container's own questions only: whoever else asks learns what the container has
 * asked for, as each name has its address in the order of questions (B80). For the sensor's own cgroup. */
SEC("cgroup_skb/ingress")
int weir_question(struct __sk_buff *skb)
{
	struct heads h;
	struct cgroup_ctx cx;
	struct bpf_sock *sk = full_socket(skb);
	__u64 *container = sk ? bpf_sk_storage_get(&resolver_sks, sk, 0, 0) : 0;
	if (!container)
		return ALLOW;
	__u32 proto = sk->protocol;
	if (read_heads(&h, skb))
		return DENY;
	if (!begins(skb, (h.ip4 ? IP4_WORDS : IP6_WORDS) * 4, proto))
		return ALLOW;
	struct bpf_sock *asker = peer_of(skb, &h, proto, 1);
	if (!asker)
		return DENY;
	walk_cgroup(&cx, cgroup_of_socket(asker));
	bpf_sk_release(asker);
	return cx.container == *container ? ALLOW : DENY;
}

/* What the resolver answers to a container stays in it: whoever asked may have left its port meanwhile, to
 * somebody who shares it (B72). For the sensor's own cgroup. By packets, and not by cgroup/sendmsg, for which
 * every datagram of the host would pay. */
SEC("cgroup_skb/egress")
int weir_reply(struct __sk_buff *skb)
{
	struct heads h;
	struct cgroup_ctx cx;
	struct dest to = {.proto = IPPROTO_UDP};
	struct bpf_sock *sk = full_socket(skb);
	__u64 *container = sk ? bpf_sk_storage_get(&resolver_sks, sk, 0, 0) : 0;
	if (!container || sk->protocol != IPPROTO_UDP)
		return ALLOW;
	if (read_heads(&h, skb))
		return DENY;
	if (h.ip4)
		set_ip4(&to, h.words[4]);
	else
		set_ip6(&to, h.words + 6);
	to.port = bpf_ntohs(h.words[h.ip4 ? IP4_WORDS : IP6_WORDS] >> 16);
	struct bpf_sock *peer = peer_of(skb, &h, IPPROTO_UDP, 0);
	if (!peer)
		return DENY;
	walk_cgroup(&cx, cgroup_of_socket(peer));
	bpf_sk_release(peer);
	return cx.container == *container && !heard_outside(&cx, address_of(sk), &to) ? ALLOW : DENY;
}

/* restore_address puts back what was asked for. */
static __always_inline int restore_address(struct bpf_sock_addr *ctx, int ip4)
{
	struct orig_dst *o = ctx->sk ? bpf_sk_storage_get(&orig_dsts, ctx->sk, 0, 0) : 0;
	struct dest from = {};
	if (!o)
		return ALLOW;
	read_dest(ctx, &from, ip4);
	const __u32 *a = (const __u32 *)from.addr, *b = (const __u32 *)o->got.addr;
	if (from.port == o->got.port && !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])))
		write_dest(ctx, &o->asked, ip4);
	return ALLOW;
}

SEC("cgroup/recvmsg4")
int weir_name_recv4(struct bpf_sock_addr *ctx)
{
	return restore_address(ctx, 1);
}

SEC("cgroup/recvmsg6")
int weir_name_recv6(struct bpf_sock_addr *ctx)
{
	return restore_address(ctx, 0);
}

SEC("cgroup/getpeername4")
int weir_name_peer4(struct bpf_sock_addr *ctx)
{
	return restore_address(ctx, 1);
}

SEC("cgroup/getpeername6")
int weir_name_peer6(struct bpf_sock_addr *ctx)
{
	return restore_address(ctx, 0);
}
