/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The last line: every packet of a guarded container's sockets is checked,
 * whoever sends it and however old the socket is (B15, B16, B20, B21, B46).
 * The socket-address programs carry grants over from the security hooks to the
 * socket's own storage, and keep loopback inside the container (B26). */
#include "listener.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define NEXT_HOP 0
#define NEXT_ROUTING 43 /* names another destination, as options of IPv4 can */
#define NEXT_FRAGMENT 44
#define NEXT_AUTH 51
#define NEXT_OPTIONS 60
#define MAX_NEXT 4
#define MAX_TRANSPORT 0x3fff /* behind so many headers it lies below that: what the verifier is told */

#include "options.h"
#include "trust.h"

#define ALLOW 1
#define DENY 0
#define LOOPBACK_DEVICE 1 /* of every network namespace */
#define NO_DEVICE 0x7fffffff
#define TCP_FIN_WAIT1 4
#define TCP_FIN_WAIT2 5
#define TCP_CLOSING 11

SEC("cgroup/sock_create")
int weir_sock_create(struct bpf_sock *ctx)
{
	struct cgroup_ctx cx;
	walk_current(&cx);
	return is_unrestricted(&cx) || is_plain(ctx->type, ctx->protocol) ? ALLOW : DENY;
}

#define READ_SIZE 4096

/* The kernel asks here once it has read an option, so that none that was delayed since before the taint
 * passes, and then sets what it has read (B120); what is longer is read again. */
SEC("cgroup/setsockopt")
int weir_option(struct bpf_sockopt *ctx)
{
	struct cgroup_ctx cx;
	struct bpf_sock *sk = ctx->sk;
	if (!sk)
		return DENY;
	int asks = asks_kernel(kernel_socket(sk), ctx->level, ctx->optname);
	int listens6 = sk->state == TCP_LISTEN && sk->family == AF_INET6;
	int again = ctx->optlen > READ_SIZE;
	if (again || !(asks || listens6))
		ctx->optlen = 0; /* it is read again */
	if (!asks && !(again && listens6))
		return ALLOW;
	walk_cgroup(&cx, cgroup_of_socket(sk));
	if (again ? is_let_be(&cx) : is_unrestricted(&cx))
		return ALLOW;
	count(COUNT_DENIED_SOCKET);
	struct record *r = bpf_ringbuf_reserve(&egress_events, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_RECORD);
		return DENY;
	}
	describe(r, &cx, RECORD_DENY, REASON_KERNEL);
	describe_task(r, bpf_get_current_task_btf());
	r->dest.proto = CALL_OPTION;
	r->target = ctx->optname;
	bpf_ringbuf_submit(r, 0);
	return DENY;
}

static __always_inline struct mark *mark_of(struct bpf_sock *sk, __u64 cookie)
{
	struct mark *m = sk ? bpf_sk_storage_get(&marks, sk, 0, 0) : 0;
	return m && m->grant ? m : bpf_map_lookup_elem(&socks, &cookie);
}

static __always_inline int is_group(const struct dest *d)
{
	const __u32 *a = (const __u32 *)d->addr;
	return is_mapped(d) ? d->addr[12] >> 4 == 14 || a[3] == ~0U : d->addr[0] == 0xff;
}

struct sock___connected {
	__u32 sk_txhash; /* of a datagram socket: not 0 once it was connected */
} __attribute__((preserve_access_index));

/* connects_again: a datagram socket that is being connected was before, or is just so by another thread.
 * Without room to note it, too. */
static __always_inline int connects_again(struct bpf_sock *sk)
{
	struct mark *m = sk ? bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	return !m || __sync_fetch_and_or(&m->told, MARK_SOURCED) & MARK_SOURCED ||
	       BPF_CORE_READ((struct sock___connected *)address_of(sk), sk_txhash);
}

/* may_connect: a datagram socket's connect sends nothing. But another one may come between the check of a
 * send and what it reads: so only the first one goes where nothing may be sent (B141). Silently: a C library
 * connects to one address after the other to choose among them. A group hears nothing of a socket that is
 * connected (B140). */
static __always_inline int may_connect(int reason, const struct dest *d, int again)
{
	if (is_open(reason) ? is_mapped(d) && is_group(d) : again) {
		count(COUNT_DENIED_CONNECT);
		return DENY;
	}
	return ALLOW;
}

static __always_inline int reach(struct bpf_sock_addr *ctx, int ip4)
{
	struct cgroup_ctx cx;
	walk_current(&cx);
	struct policy *p = policy_of(&cx);
	if (!cx.guarded || (!cx.taint && !cx.deep && p && p->mode != MODE_SEAL))
		return ALLOW;
	struct dest d = {};
	read_dest(ctx, &d, ip4);
	int again = ctx->type == SOCK_DGRAM && connects_again(ctx->sk);
	__u64 cookie = bpf_get_socket_cookie(ctx);
	struct mark *m = bpf_map_lookup_elem(&socks, &cookie);
	int reason = judge(&cx, &d, m ? m->grant : 0, bpf_get_current_pid_tgid() >> 32);
	if (reason == REASON_GRANTED && m && ctx->sk) {
		struct mark *kept = bpf_sk_storage_get(&marks, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (kept)
			keep_mark(kept, m);
	}
	/* names.bpf.c writes the resolver's address in its place, before this or after it */
	if ((reason == REASON_TAINTED || reason == REASON_LOOPBACK) &&
	    resolver_for(&cx, &d, bpf_get_netns_cookie(ctx), 0))
		return ALLOW;
	if (reason == REASON_LOOPBACK && listener(ctx, &cx, &d) == LISTENS_FOREIGN) {
		if (p && p->mode == MODE_OBSERVE)
			return ALLOW;
		count(COUNT_DENIED_CONNECT);
		emit(&cx, &d, RECORD_DENY, REASON_OUTSIDE, cookie);
		return DENY;
	}
	if (ctx->type == SOCK_DGRAM)
		return may_connect(reason, &d, again);
	return is_open(reason) ? ALLOW : DENY;
}

SEC("cgroup/connect4")
int weir_connect4(struct bpf_sock_addr *ctx)
{
	return reach(ctx, 1);
}

SEC("cgroup/connect6")
int weir_connect6(struct bpf_sock_addr *ctx)
{
	return reach(ctx, 0);
}

/* Where a packet goes and where it comes from. */
struct packet {
	struct dest to;
	__u32 from[4];
	__u16 from_port; /* network order, as to_port */
	__u16 to_port;
	__u32 ip4;
	__u32 transport; /* offset of its header */
};

/* Most headers lie where they can be read without a call. to is of whole words. */
static __always_inline int load(struct __sk_buff *skb, __u32 offset, __u32 *to, __u32 words)
{
	__u32 *from = (void *)(long)skb->data + offset;
	if ((void *)(from + words) > (void *)(long)skb->data_end)
		return bpf_skb_load_bytes(skb, offset, to, words * 4);
	for (__u32 i = 0; i < words; i++)
		to[i] = from[i];
	return 0;
}

static __always_inline int read_ports(struct __sk_buff *skb, struct packet *pkt, __u32 offset)
{
	__u32 ports;
	pkt->transport = offset;
	if (pkt->to.proto != IPPROTO_TCP && pkt->to.proto != IPPROTO_UDP)
		return 1;
	if (load(skb, offset, &ports, 1))
		return 0;
	pkt->from_port = ports;
	pkt->to_port = ports >> 16;
	pkt->to.port = bpf_ntohs(pkt->to_port);
	return 1;
}

/* Options can name a second destination (source routes), so they are not for tainted packets. */
static __always_inline int read_ip4(struct __sk_buff *skb, struct packet *pkt)
{
	__u32 head[5];
	if (load(skb, 0, head, 5) || (head[0] & 15) != 5)
		return 0;
	if (head[1] & bpf_ntohl(0x1fff))
		return 0; /* a later fragment has no ports */
	pkt->ip4 = 1;
	pkt->from[0] = head[3];
	set_ip4(&pkt->to, head[4]);
	pkt->to.proto = head[2] >> 8;
	return read_ports(skb, pkt, sizeof(head));
}

static __always_inline int read_ip6(struct __sk_buff *skb, struct packet *pkt)
{
	__u32 address[8];
	__u8 next[2];
	__u32 offset = 40;
	if (bpf_skb_load_bytes(skb, 8, address, sizeof(address)) || bpf_skb_load_bytes(skb, 6, next, 1))
		return 0;
	__builtin_memcpy(pkt->from, address, sizeof(pkt->from));
	set_ip6(&pkt->to, address + 4);
	for (int i = 0; i < MAX_NEXT; i++) {
		pkt->to.proto = next[0];
		if (next[0] != NEXT_HOP && next[0] != NEXT_OPTIONS)
			return next[0] != NEXT_ROUTING && next[0] != NEXT_FRAGMENT && next[0] != NEXT_AUTH &&
			       read_ports(skb, pkt, offset);
		if (bpf_skb_load_bytes(skb, offset, next, sizeof(next)))
			return 0;
		offset += (next[1] + 1) * 8;
	}
	return 0;
}

/* Global, verified once: what follows would be gone through for each way in which a packet can be read. */
__noinline int read_packet(struct __sk_buff *skb, struct packet *pkt)
{
	if (!pkt)
		return 0;
	return skb->protocol == bpf_htons(ETH_P_IP) ? read_ip4(skb, pkt) : read_ip6(skb, pkt);
}

static __always_inline void source(const struct packet *pkt, struct dest *from)
{
	from->port = bpf_ntohs(pkt->from_port);
	from->proto = pkt->to.proto;
	if (pkt->ip4)
		set_ip4(from, pkt->from[0]);
	else
		set_ip6(from, pkt->from);
}

/* A packet for loopback leaves by its device, or it leaves the machine (B54). It comes from there, too: what
 * is answered to another source, by the kernel or a service, carries what it says elsewhere (B55, B56). */
static __always_inline int stays(struct __sk_buff *skb, const struct packet *pkt)
{
	struct dest from = {};
	source(pkt, &from);
	return skb->ifindex == LOOPBACK_DEVICE && is_loopback(&from);
}

/* comes_from_here: the source is an address of the socket's network namespace. Any other, which a socket may
 * choose (IPV6_FREEBIND, IP_TRANSPARENT), is told what the destination answers (B55). skb is its address: a
 * global function takes no pointer to what the kernel has there. */
__noinline int comes_from_here(struct packet *pkt, __u64 skb)
{
	struct dest from = {};
	if (!pkt)
		return 0;
	source(pkt, &from);
	struct net_device *dev = BPF_CORE_READ((struct sk_buff *)skb, dev);
	return is_here(&from, (__u64)BPF_CORE_READ(dev, nd_net.net), (__u64)dev);
}

/* hides_source: the host's rules have written another source in place of the socket's own, and write that
 * back into what is answered (B142). */
static __always_inline int hides_source(struct bpf_sock *sk, const struct packet *pkt)
{
	struct dest own = {}, from = {};
	if (!sk)
		return 0;
	struct sock *socket = (struct sock *)address_of(sk);
	own_source(socket, &own);
	source(pkt, &from);
	const __u32 *a = (const __u32 *)own.addr, *b = (const __u32 *)from.addr;
	return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) && is_elsewhere(&own, socket);
}

struct ipv6_pinfo___way {
	int ucast_oif;
	int mcast_oif;
	struct {
		int ipi6_ifindex;
	} sticky_pktinfo;
} __attribute__((preserve_access_index));

struct inet_sock___way {
	__u32 inet_saddr;
	int uc_index;
	int mc_index;
	struct ipv6_pinfo___way *pinet6;
} __attribute__((preserve_access_index));

/* chose_way: the socket says itself by which device it sends, or by which of the host's routes, as it was set
 * before the taint, or a message on it does: somebody else may have the destination's address there (B89). A
 * link's own addresses need a device. What goes to a group of IPv4 leaves by the device of the socket's own
 * address, where it has one (B140). */
static __always_inline int chose_way(struct bpf_sock *sk, const struct dest *to)
{
	if (!sk || is_link_local(to))
		return 0;
	if (sk->bound_dev_if || sk->mark || passes_gateways((struct sock *)address_of(sk)))
		return 1;
	if (sk->protocol != IPPROTO_UDP)
		return 0;
	struct mark *m = bpf_sk_storage_get(&marks, sk, 0, 0);
	struct inet_sock___way *inet = (void *)address_of(sk);
	int group = is_group(to);
	if (!m || m->told & MARK_ASTRAY || BPF_CORE_READ(inet, uc_index) ||
	    (group && BPF_CORE_READ(inet, mc_index)) ||
	    (group && is_mapped(to) && (m->told & MARK_SOURCED || BPF_CORE_READ(inet, inet_saddr))))
		return 1;
	return sk->family == AF_INET6 && (BPF_CORE_READ(inet, pinet6, ucast_oif) ||
	                                  BPF_CORE_READ(inet, pinet6, sticky_pktinfo.ipi6_ifindex) ||
	                                  (group && BPF_CORE_READ(inet, pinet6, mcast_oif)));
}

/* What a datagram's notes say of its way: of several to one address the kernel asks weir_sendmsg about the
 * first only. note_way notes it before the packet is made. */
static __always_inline int note_way(struct sock *sk, __u32 told)
{
	struct cgroup_ctx cx;
	if (!told)
		return 0;
	walk_current(&cx);
	struct mark *m = is_unrestricted(&cx) ? 0 : bpf_sk_storage_get(&marks, sk, 0, 0);
	if (m)
		__sync_fetch_and_or(&m->told, told);
	return 0;
}

/* There must be room for that on the socket, whose options the container may fill: chose_way takes one
 * without for one that chose. sourced: of IPv4, whose address another thread may take away meanwhile. */
static __always_inline int make_room(struct sock *sk, int sourced)
{
	struct cgroup_ctx cx;
	if (outside())
		return 0;
	walk_current(&cx);
	struct mark *m =
	    is_unrestricted(&cx) ? 0 : bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (m && sourced && BPF_CORE_READ((struct inet_sock___way *)sk, inet_saddr))
		__sync_fetch_and_or(&m->told, MARK_SOURCED);
	return 0;
}

SEC("fentry/udp_sendmsg")
int BPF_PROG(weir_room4, struct sock *sk)
{
	return make_room(sk, 1);
}

SEC("fentry/udpv6_sendmsg")
int BPF_PROG(weir_room6, struct sock *sk)
{
	return make_room(sk, 0);
}

struct ipcm_cookie___way {
	struct {
		__u32 mark;
	} sockc;
	__u32 addr;
	int oif;
} __attribute__((preserve_access_index));

struct ipcm6_cookie___way {
	struct {
		__u32 mark;
	} sockc;
} __attribute__((preserve_access_index));

struct flowi6___way {
	struct {
		int flowic_oif;
	} __fl_common;
} __attribute__((preserve_access_index));

SEC("fexit/ip_cmsg_send")
int BPF_PROG(weir_notes4, struct sock *sk, void *msg, struct ipcm_cookie___way *notes)
{
	return note_way(sk,
	                (BPF_CORE_READ(notes, oif) || BPF_CORE_READ(notes, sockc.mark) ? MARK_ASTRAY : 0) |
	                    (BPF_CORE_READ(notes, addr) ? MARK_SOURCED : 0));
}

SEC("fexit/ip6_datagram_send_ctl")
int BPF_PROG(weir_notes6, void *net, struct sock *sk, void *msg, struct flowi6___way *flow,
             struct ipcm6_cookie___way *notes)
{
	return note_way(sk, BPF_CORE_READ(flow, __fl_common.flowic_oif) || BPF_CORE_READ(notes, sockc.mark)
	                        ? MARK_ASTRAY
	                        : 0);
}

/* Who hears what is sent from one address of loopback to another. Where a connection has ended lately, who
 * listens has what begins another between the same ports (B173). */
static __always_inline enum listener listens(struct __sk_buff *skb, struct cgroup_ctx *cx,
                                             struct bpf_sock_tuple *tuple, const struct packet *pkt)
{
	__u32 size = pkt->ip4 ? sizeof(tuple->ipv4) : sizeof(tuple->ipv6);
	struct bpf_sock *peer;
	if (pkt->to.proto == IPPROTO_TCP) {
		peer = bpf_sk_lookup_tcp(skb, tuple, size, BPF_F_CURRENT_NETNS, 0);
		if (!peer) {
			*(pkt->ip4 ? &tuple->ipv4.sport : &tuple->ipv6.sport) = 0;
			peer = bpf_sk_lookup_tcp(skb, tuple, size, BPF_F_CURRENT_NETNS, 0);
		}
	} else if (pkt->to.proto == IPPROTO_UDP)
		peer = bpf_sk_lookup_udp(skb, tuple, size, BPF_F_CURRENT_NETNS, 0);
	else
		return LISTENS_FOREIGN;
	if (!peer)
		return LISTENS_NOBODY;
	enum listener who = LISTENS_FOREIGN;
	if (cx->container && is_resolver_sk(cx, peer))
		who = LISTENS_SENSOR;
	else if (cx->container && bpf_sk_ancestor_cgroup_id(peer, cx->level) == cx->container &&
	         !shared_outside(cx, address_of(peer)))
		who = LISTENS_OWN;
	bpf_sk_release(peer);
	return who;
}

/* Who hears a packet, or what answers it: a socket may send from any address of loopback, and what the kernel
 * or a service answers has what was sent in it. Global, verified once. skb is its context. */
__noinline int who_hears(struct __sk_buff *skb, struct cgroup_ctx *cx, struct packet *pkt, int answer)
{
	struct bpf_sock_tuple tuple = {};
	if (!cx || !pkt)
		return LISTENS_FOREIGN;
	__u32 *a = (__u32 *)pkt->to.addr, *b = pkt->from;
	__u16 from_port = answer ? pkt->to_port : pkt->from_port;
	__u16 to_port = answer ? pkt->from_port : pkt->to_port;
	if (pkt->ip4) {
		tuple.ipv4.saddr = answer ? a[3] : b[0];
		tuple.ipv4.daddr = answer ? b[0] : a[3];
		tuple.ipv4.sport = from_port;
		tuple.ipv4.dport = to_port;
	} else {
		for (int i = 0; i < 4; i++) {
			tuple.ipv6.saddr[i] = answer ? a[i] : b[i];
			tuple.ipv6.daddr[i] = answer ? b[i] : a[i];
		}
		tuple.ipv6.sport = from_port;
		tuple.ipv6.dport = to_port;
	}
	return listens(skb, cx, &tuple, pkt);
}

/* What is read of a packet stays in registers, whose bounds the verifier knows. */
static __always_inline int from_outside(struct __sk_buff *skb, struct cgroup_ctx *cx,
                                        const struct packet *pkt)
{
	struct packet copy = *pkt;
	return who_hears(skb, cx, &copy, 1) == LISTENS_FOREIGN;
}

/* within: nobody outside hears a packet to loopback, or what is answered. */
static __always_inline int within(struct __sk_buff *skb, struct bpf_sock *sk, struct cgroup_ctx *cx,
                                  struct packet *pkt)
{
	enum listener to = who_hears(skb, cx, pkt, 0);
	if (pkt->to.proto != IPPROTO_UDP || to == LISTENS_FOREIGN)
		return to != LISTENS_FOREIGN;
	enum listener from = who_hears(skb, cx, pkt, 1);
	if (!sk || from == LISTENS_FOREIGN ||
	    (to == LISTENS_OWN && heard_outside(cx, address_of(sk), &pkt->to)))
		return 0;
	struct dest source_of = {};
	source(pkt, &source_of);
	return from != LISTENS_OWN || !heard_outside(cx, address_of(sk), &source_of);
}

#define TCP_OFFSET 12

/* carries says whether a packet has more than headers. */
static __always_inline int carries(struct __sk_buff *skb, struct packet *pkt)
{
	__u8 words;
	if (pkt->to.proto != IPPROTO_TCP || bpf_skb_load_bytes(skb, pkt->transport + TCP_OFFSET, &words, 1))
		return 1;
	return skb->len > pkt->transport + (words >> 4) * 4;
}

/* charge takes a packet off a grant's budget. */
static __always_inline int charge(struct __sk_buff *skb, struct cgroup_ctx *cx, struct packet *pkt, __u64 id)
{
	__u32 bytes = skb->len;
	struct grant *g = bpf_map_lookup_elem(&grants, &id);
	if (!g)
		return DENY;
	struct grant_dest key = {.grant = id, .dest = pkt->to};
	enum dest_use *use = bpf_map_lookup_elem(&grant_dests, &key);
	if (use && *use == DEST_OPEN && carries(skb, pkt))
		*use = DEST_USED;
	if ((id & REPLY_ID) && !carries(skb, pkt))
		return ALLOW; /* it may receive without limit */
	__s64 before = __sync_fetch_and_add(&g->bytes, -(__s64)bytes);
	if (before > (__s64)bytes)
		return ALLOW;
	if (before <= 0)
		return DENY;
	struct record *r = bpf_ringbuf_reserve(&egress_events, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_RECORD);
		return DENY;
	}
	describe(r, cx, RECORD_SPENT, REASON_GRANTED);
	r->grant = id;
	r->dest = pkt->to;
	bpf_ringbuf_submit(r, 0);
	return DENY;
}

/* Said once for each socket: its packets keep coming. */
static __always_inline int drop(struct __sk_buff *skb, struct bpf_sock *sk, struct cgroup_ctx *cx,
                                struct packet *pkt, int reason)
{
	count(COUNT_DROPPED);
	struct mark *m = sk ? bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	if (!m || m->told & MARK_TOLD)
		return DENY;
	__sync_fetch_and_or(&m->told, MARK_TOLD);
	struct record *r = bpf_ringbuf_reserve(&egress_events, sizeof(*r), 0);
	if (!r) {
		count(COUNT_LOST_RECORD);
		return DENY;
	}
	describe(r, cx, RECORD_DROP, reason);
	r->cgroup = bpf_skb_cgroup_id(skb);
	r->cookie = bpf_get_socket_cookie(skb);
	r->dest = pkt->to;
	bpf_ringbuf_submit(r, 0);
	return DENY;
}

/* A connection to an allowed name outlives the time that the name's address is good for, until the policy
 * changes.
 */
static __always_inline int keep_named(struct bpf_sock *sk, struct policy *p, struct packet *pkt)
{
	struct mark *m = sk && p && pkt->to.proto == IPPROTO_TCP
	                     ? bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE)
	                     : 0;
	if (m && !m->grant) {
		m->told = p->generation << MARK_FLAGS | (m->told & MARK_TOLD);
		m->dest = pkt->to;
	}
	return ALLOW;
}

static __always_inline int was_named(struct bpf_sock *sk, struct policy *p, const struct dest *d)
{
	struct mark *m = sk ? bpf_sk_storage_get(&marks, sk, 0, 0) : 0;
	if (!m || !p || !(m->told >> MARK_FLAGS) ||
	    m->told >> MARK_FLAGS != p->generation << MARK_FLAGS >> MARK_FLAGS)
		return 0;
	const __u32 *a = (const __u32 *)&m->dest, *b = (const __u32 *)d;
	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]));
}

/* This end of a connection has said that it is done, and waits for the other one. */
static __always_inline int is_closing(__u32 state)
{
	return state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_CLOSING;
}

/* A connection that is being closed is answered by the kernel for a time after the socket is forgotten: past
 * every check, and with what was set until then (tcp_time_wait). So while nothing may go to its peer, it
 * hears nothing that would bring it there, and who closes it leaves nobody who hears anything (B61). */
static __always_inline int may_answer(struct cgroup_ctx *cx, struct policy *p, struct bpf_sock *sk,
                                      __u64 cookie, struct dest *peer)
{
	struct mark *m = mark_of(sk, cookie);
	return is_open(judge(cx, peer, m ? m->grant : 0, 0)) || was_named(sk, p, peer);
}

SEC("cgroup/sock_release")
int weir_sock_release(struct bpf_sock *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	if (ctx->type == SOCK_STREAM && is_closing(ctx->state)) {
		struct cgroup_ctx cx;
		struct dest peer = {.proto = ctx->protocol, .port = bpf_ntohs(ctx->dst_port)};
		walk_cgroup(&cx, cgroup_of_socket(ctx));
		struct policy *p = policy_of(&cx);
		if (ctx->family == AF_INET) {
			set_ip4(&peer, ctx->dst_ip4);
		} else {
			__u32 a[4] = {ctx->dst_ip6[0], ctx->dst_ip6[1], ctx->dst_ip6[2], ctx->dst_ip6[3]};
			set_ip6(&peer, a);
		}
		/* who is at the other end on loopback cannot be asked here */
		if (is_restricted(&cx, p) && (is_loopback(&peer) || !may_answer(&cx, p, ctx, cookie, &peer)))
			/* where no packet of the peer's comes from */
			ctx->bound_dev_if = is_loopback(&peer) ? NO_DEVICE : LOOPBACK_DEVICE;
	}
	bpf_map_delete_elem(&socks, &cookie);
	return ALLOW;
}

/* A global function, verified once: after the branches that take a packet apart, the loop over
 * levels would be gone through for each of them. */
__noinline int walk_packet(struct cgroup_ctx *cx, struct __sk_buff *skb, __u64 epoch, __u64 cgroup)
{
	if (!cx)
		return 0;
	walk_skb(cx, skb, epoch, cgroup);
	return 0;
}

/* check_trust taints who sends to an untrusted destination, and lets it go on with that; the packet is judged
 * afterwards. What is denied anyhow taints nothing. 0: there was no room for the taint. */
static __always_inline int check_trust(struct __sk_buff *skb, struct cgroup_ctx *cx, struct policy *p)
{
	struct packet pkt = {};
	struct bpf_sock *sk = skb->sk;
	if (sk)
		sk = bpf_sk_fullsock(sk);
	__u64 cookie = bpf_get_socket_cookie(skb), id = 0;
	int readable = read_packet(skb, &pkt);
	if (readable && is_trusted(cx, p, &pkt.to))
		return 1;
	if (!readable)
		return taint_for_peer(cx, bpf_skb_cgroup_id(skb), &pkt.to, 0, sk, 0);
	if (!cx->taint && !cx->deep)
		return taint_for_peer(cx, bpf_skb_cgroup_id(skb), &pkt.to, REPLY_ID | cookie, sk, p);
	struct mark *m = mark_of(sk, cookie);
	__u64 marked = m ? m->grant : 0;
	int reason = judge(cx, &pkt.to, marked, 0);
	if (!is_open(reason))
		return 1;
	if (reason == REASON_GRANTED) { /* it was given for this */
		id = open_grant(cx->grant, &pkt.to, 0, cx->taint) ? cx->grant : marked;
		struct grant *g = bpf_map_lookup_elem(&grants, &id);
		if (g)
			__sync_fetch_and_or(&g->taint, TAINT_CORRUPTION);
	}
	return taint_for_peer(cx, bpf_skb_cgroup_id(skb), &pkt.to, id, sk, 0);
}

SEC("cgroup_skb/egress")
int weir_packet(struct __sk_buff *skb)
{
	struct cgroup_ctx cx;
	struct allow_key now = {
	    .epoch = current_epoch(), .socket = bpf_skb_cgroup_id(skb), .device = skb->ifindex};
	walk_packet(&cx, skb, now.epoch, now.socket);
	struct policy *p = policy_of(&cx);
	if (checks_trust(&cx, p) && !check_trust(skb, &cx, p))
		return DENY;
	if (!is_restricted(&cx, p))
		return ALLOW;

	struct packet pkt = {};
	int readable = read_packet(skb, &pkt);
	struct bpf_sock *sk = skb->sk;
	if (sk)
		sk = bpf_sk_fullsock(sk);
	if (!readable)
		return drop(skb, sk, &cx, &pkt, REASON_UNREADABLE);
	now.sender = sk ? (__u64)BPF_CORE_READ(kernel_socket(sk), __sk_common.skc_net.net) : 0;
	now.dest = pkt.to;
	struct allow_entry *last = find_allowed(&now);
	/* what is remembered was said of a socket that chose nothing */
	if (now.socket && now.sender && was_allowed(last, &now, pkt.from) && !chose_way(sk, &pkt.to) &&
	    !hides_source(sk, &pkt))
		return ALLOW;

	__u64 cookie = bpf_get_socket_cookie(skb);
	struct mark *m = mark_of(sk, cookie);
	int reason = judge(&cx, &pkt.to, m ? m->grant : 0, 0);
	if (reason == REASON_LOOPBACK)
		return stays(skb, &pkt) && within(skb, sk, &cx, &pkt) && !hides_source(sk, &pkt)
		           ? ALLOW
		           : drop(skb, sk, &cx, &pkt, REASON_OUTSIDE);
	if (reason == REASON_GRANTED && is_synthetic(&cx, &pkt.to))
		reason = REASON_UNRESOLVED; /* a socket from before the grant: nobody is at that address */
	if (!is_open(reason) && !(reason == REASON_TAINTED && was_named(sk, p, &pkt.to)))
		return drop(skb, sk, &cx, &pkt, reason);
	if (chose_way(sk, &pkt.to) || !comes_from_here(&pkt, address_of(skb)) || hides_source(sk, &pkt))
		return drop(skb, sk, &cx, &pkt, REASON_OUTSIDE);
	if (reason == REASON_GRANTED) {
		__u64 id = open_grant(cx.grant, &pkt.to, 0, cx.taint) ? cx.grant : m ? m->grant : 0;
		return charge(skb, &cx, &pkt, id);
	}
	if (reason == REASON_NAMED)
		return keep_named(sk, p, &pkt);
	if (reason == REASON_LISTED && now.socket && now.sender)
		cache_allowed(last, &now, pkt.from);
	return ALLOW;
}

#define TCP_FLAGS 12 /* and the header's length before them */
#define TCP_SYN 0x200
#define TCP_ACK 0x1000

/* Nobody outside begins a connection with a tainted container (B46). The answer
 * to a SYN is a packet too, but 6.1 does not show those of IPv6 to weir_packet,
 * and no kernel those that are cookies: so what cannot be read does not arrive (B59).
 * And nobody untrusted brings anything to a clean one that did not ask. */
SEC("cgroup_skb/ingress")
int weir_arrival(struct __sk_buff *skb)
{
	struct cgroup_ctx cx;
	struct packet pkt = {};
	__u32 flags = 0;
	/* first what most packets are done with */
	int readable = read_packet(skb, &pkt);
	int tcp = readable && pkt.to.proto == IPPROTO_TCP;
	struct bpf_sock *sk = skb->sk;
	int closing = tcp && sk && is_closing(sk->state);
	/* what begins nothing is answered by a listener, too, or not, as the container has set it (B91) */
	int listens = tcp && sk && sk->state == TCP_LISTEN;
	if (tcp && !closing && !listens &&
	    (load(skb, (pkt.transport & MAX_TRANSPORT) + TCP_FLAGS, &flags, 1) ||
	     (flags & (TCP_SYN | TCP_ACK)) != TCP_SYN))
		return ALLOW; /* begins and ends nothing */
	walk_packet(&cx, skb, current_epoch(), bpf_skb_cgroup_id(skb));
	struct policy *p = policy_of(&cx);
	struct dest from = {};
	source(&pkt, &from);
	if (closing && is_restricted(&cx, p)) {
		sk = sk ? bpf_sk_fullsock(sk) : 0;
		if (is_loopback(&from) ? !from_outside(skb, &cx, &pkt)
		                       : may_answer(&cx, p, sk, bpf_get_socket_cookie(skb), &from))
			return ALLOW;
		count(COUNT_DROPPED);
		return DENY;
	}
	if (closing)
		return ALLOW;
	int asks = checks_trust(&cx, p);
	if (!asks && !is_restricted(&cx, p))
		return ALLOW;
	if (readable && !tcp && !asks)
		return ALLOW;
	if (asks && p && (!readable || !is_trusted(&cx, p, &from))) {
		if (p->mode == MODE_OBSERVE)
			return taint_for_peer(&cx, bpf_skb_cgroup_id(skb), &from, 0, 0, 0);
		count(COUNT_DROPPED);
		return DENY;
	}
	if ((readable && !tcp) || (p && p->mode == MODE_OBSERVE))
		return ALLOW;
	/* no check sees the answer to some, on loopback either: 6.1's of IPv6, and cookies */
	if (readable && is_open(judge(&cx, &from, 0, 0)) &&
	    !(is_loopback(&from) && from_outside(skb, &cx, &pkt)))
		return ALLOW;
	count(COUNT_DROPPED);
	return DENY;
}

#define IPPROTO_ICMP 1
#define IPPROTO_ICMPV6 58
#define SO_EE_ORIGIN_ICMP 2
#define SO_EE_ORIGIN_ICMP6 3
#define IP4_SOURCE 12 /* in its header */
#define IP6_SOURCE 8

struct sk_buff___error {
	char cb[48];
	unsigned char *head;
	int skb_iif;
	__u16 network_header;
	__u16 protocol;
} __attribute__((preserve_access_index));

struct sock_exterr_skb___of {
	struct {
		__u8 ee_origin;
	} ee;
} __attribute__((preserve_access_index));

/* What ICMP says of a packet is put into the socket's queue of errors, with what it quotes, and no check of
 * arrivals sees it: whoever takes it out has it from who said so (B129). */
SEC("fexit/sock_dequeue_err_skb")
int BPF_PROG(weir_error, struct sock *sk, struct sk_buff___error *skb)
{
	struct cgroup_ctx cx;
	struct dest from = {};
	struct sock_exterr_skb___of *error = 0;
	__u32 addr[4] = {};
	if (!skb || outside())
		return 0;
	walk_current(&cx);
	struct policy *p = policy_of(&cx);
	if (!cx.guarded || !checks_trust(&cx, p))
		return 0;
	error = (void *)skb + bpf_core_field_offset(struct sk_buff___error, cb);
	__u8 origin = BPF_CORE_READ(error, ee.ee_origin);
	if (origin != SO_EE_ORIGIN_ICMP && origin != SO_EE_ORIGIN_ICMP6)
		return 0;
	if (BPF_CORE_READ(skb, skb_iif) == LOOPBACK_DEVICE)
		return 0; /* this kernel says so: nobody is there */
	int ip4 = BPF_CORE_READ(skb, protocol) == bpf_htons(ETH_P_IP);
	void *header = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	if (!bpf_probe_read_kernel(addr, sizeof(addr), header + (ip4 ? IP4_SOURCE : IP6_SOURCE))) {
		if (ip4)
			set_ip4(&from, addr[0]);
		else
			set_ip6(&from, addr);
		from.proto = ip4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
		if (is_trusted(&cx, p, &from))
			return 0;
	}
	if (!taint_for_peer(&cx, cx.cgroup, &from, 0, 0, 0))
		bpf_send_signal(SIGKILL); /* before it is read */
	return 0;
}
