/* Addresses that are written in place of others, at the sockets' edge: the resolver's for those of name
 * servers, and for one that stands for a name, the one that the name leads to. Whether that may go out is
 * judged in the security hooks before, and for each packet afterwards. */
#include "listener.h"

char LICENSE[] SEC("license") = "GPL";

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
	int port = resolver_for(cx, d, bpf_get_netns_cookie(ctx));
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

/* check_reply keeps what the resolver answers to a container in it: whoever asked may have left its port
 * meanwhile, to somebody who shares it (B72). For the sensor's own cgroup. */
static __always_inline int check_reply(struct bpf_sock_addr *ctx, struct bpf_sock_tuple *tuple, __u32 size)
{
	__u64 *container = ctx->sk ? bpf_sk_storage_get(&resolver_sks, ctx->sk, 0, 0) : 0;
	if (!container)
		return ALLOW;
	struct bpf_sock *peer = bpf_sk_lookup_udp(ctx, tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!peer)
		return DENY;
	struct cgroup_ctx cx;
	walk_cgroup(&cx, cgroup_of_socket(peer));
	struct dest to = {};
	read_dest(ctx, &to, size == sizeof(tuple->ipv4));
	int own = cx.container == *container && !heard_outside(&cx, address_of(ctx->sk), &to);
	bpf_sk_release(peer);
	return own ? ALLOW : DENY;
}

SEC("cgroup/sendmsg4")
int weir_reply4(struct bpf_sock_addr *ctx)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk = ctx->sk;
	if (!sk)
		return ALLOW;
	tuple.ipv4.saddr = sk->src_ip4;
	tuple.ipv4.daddr = ctx->user_ip4;
	tuple.ipv4.sport = bpf_htons(sk->src_port);
	tuple.ipv4.dport = ctx->user_port;
	return check_reply(ctx, &tuple, sizeof(tuple.ipv4));
}

SEC("cgroup/sendmsg6")
int weir_reply6(struct bpf_sock_addr *ctx)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk = ctx->sk;
	if (!sk)
		return ALLOW;
	__u32 from[4] = {sk->src_ip6[0], sk->src_ip6[1], sk->src_ip6[2], sk->src_ip6[3]};
	__u32 to[4] = {ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]};
	__builtin_memcpy(tuple.ipv6.saddr, from, sizeof(from));
	__builtin_memcpy(tuple.ipv6.daddr, to, sizeof(to));
	tuple.ipv6.sport = bpf_htons(sk->src_port);
	tuple.ipv6.dport = ctx->user_port;
	return check_reply(ctx, &tuple, sizeof(tuple.ipv6));
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

/* The resolver hears the container's own questions only: whoever else asks learns what the container has
 * asked for, as each name has its address in the order of questions (B80). For the sensor's own cgroup. */
SEC("cgroup_skb/ingress")
int weir_question(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	if (sk)
		sk = bpf_sk_fullsock(sk);
	__u64 *container = sk ? bpf_sk_storage_get(&resolver_sks, sk, 0, 0) : 0;
	if (!container)
		return ALLOW;
	struct bpf_sock_tuple tuple = {};
	__u32 head[IP6_WORDS + 1]; /* and the ports */
	int ip4 = skb->protocol == bpf_htons(ETH_P_IP);
	__u32 words = ip4 ? IP4_WORDS : IP6_WORDS, size = ip4 ? sizeof(tuple.ipv4) : sizeof(tuple.ipv6);
	__u32 proto = sk->protocol;
	if (bpf_skb_load_bytes(skb, 0, head, ip4 ? (IP4_WORDS + 1) * 4 : sizeof(head)))
		return DENY;
	if (!begins(skb, words * 4, proto))
		return ALLOW;
	if (ip4) {
		tuple.ipv4.saddr = head[4];
		tuple.ipv4.daddr = head[3];
		tuple.ipv4.sport = head[5] >> 16;
		tuple.ipv4.dport = head[5];
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, head + 6, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, head + 2, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.sport = head[10] >> 16;
		tuple.ipv6.dport = head[10];
	}
	struct bpf_sock *asker = proto == IPPROTO_TCP
	                             ? bpf_sk_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0)
	                             : bpf_sk_lookup_udp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!asker)
		return DENY;
	struct cgroup_ctx cx;
	walk_cgroup(&cx, cgroup_of_socket(asker));
	bpf_sk_release(asker);
	return cx.container == *container ? ALLOW : DENY;
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
