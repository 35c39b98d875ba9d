/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a socket's options have the kernel say for it, or by which way. */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include "decide.h"

#define SOL_IP 0
#define SOL_IPV6 41
#define IP_ADD_MEMBERSHIP 35 /* the first that joins, leaves or filters groups */
#define IPV6_ADD_MEMBERSHIP 20
#define IPV6_DROP_MEMBERSHIP 21
#define IPV6_JOIN_ANYCAST 27
#define IPV6_LEAVE_ANYCAST 28
#define MCAST_JOIN_GROUP 42
#define MCAST_MSFILTER 48 /* the last, of both levels */
#define SOL_SOCKET 1
#define SO_DONTROUTE 5
#define SO_BINDTODEVICE 25
#define SO_MARK 36
#define SO_ATTACH_REUSEPORT_CBPF 51
#define SO_ATTACH_REUSEPORT_EBPF 52
#define SO_BINDTOIFINDEX 62
#define SO_DETACH_REUSEPORT_BPF 68
#define IP_FREEBIND 15
#define IP_TRANSPARENT 19
#define IP_MULTICAST_IF 32
#define IP_UNICAST_IF 50
#define IPV6_MULTICAST_IF 17
#define IPV6_PKTINFO 50
#define IPV6_TRANSPARENT 75
#define IPV6_UNICAST_IF 76
#define IPV6_FREEBIND 78
#define SOL_TCP 6
#define TCP_MD5SIG 14
#define TCP_MD5SIG_EXT 32
#define TCP_AO_ADD_KEY 38
#define TCP_AO_REPAIR 42 /* the last of that kind */

/* igmpv3_newpack and mld_newpack say to the link which groups, and whose packets, somebody wants (B47). */
static __always_inline int is_membership(int level, int option)
{
	if (level == SOL_IP)
		return option >= IP_ADD_MEMBERSHIP && option <= MCAST_MSFILTER;
	if (level != SOL_IPV6)
		return 0;
	return option == IPV6_ADD_MEMBERSHIP || option == IPV6_DROP_MEMBERSHIP ||
	       option == IPV6_JOIN_ANYCAST || option == IPV6_LEAVE_ANYCAST ||
	       (option >= MCAST_JOIN_GROUP && option <= MCAST_MSFILTER);
}

/* With a listener's keys the kernel signs the reset that it answers somebody outside, and without the one
 * that he signs with it answers nothing (tcp_v4_send_reset): so he could try keys (B87). */
static __always_inline int is_key(int level, int option)
{
	return level == SOL_TCP && (option == TCP_MD5SIG || option == TCP_MD5SIG_EXT ||
	                            (option >= TCP_AO_ADD_KEY && option <= TCP_AO_REPAIR));
}

/* By which device a socket sends, by which of the host's routes, and from whose address, is not the
 * container's to say (B89, B142). */
static __always_inline int is_way(int level, int option)
{
	if (level == SOL_SOCKET)
		return option == SO_BINDTODEVICE || option == SO_BINDTOIFINDEX || option == SO_MARK ||
		       option == SO_DONTROUTE;
	if (level == SOL_IP)
		return option == IP_UNICAST_IF || option == IP_MULTICAST_IF || option == IP_FREEBIND ||
		       option == IP_TRANSPARENT;
	return level == SOL_IPV6 &&
	       (option == IPV6_PKTINFO || option == IPV6_UNICAST_IF || option == IPV6_MULTICAST_IF ||
	        option == IPV6_FREEBIND || option == IPV6_TRANSPARENT);
}

/* Of the sockets that share a port, some may be somebody's outside: which of them gets what packet is not the
 * container's to say, or whoever sends there hears it from who answers (B102). */
static __always_inline int is_choice(int level, int option)
{
	return level == SOL_SOCKET &&
	       (option == SO_ATTACH_REUSEPORT_CBPF || option == SO_ATTACH_REUSEPORT_EBPF ||
	        option == SO_DETACH_REUSEPORT_BPF);
}

struct request_sock_queue___begun {
	struct {
		int counter;
	} qlen;
} __attribute__((preserve_access_index));

struct inet_connection_sock___begun {
	struct request_sock_queue___begun icsk_accept_queue;
} __attribute__((preserve_access_index));

#define TCP_LISTEN 10

/* What begins a connection is answered again, with what the listener has set by then, until the daemon has
 * closed it; and of IPv6 no check of 6.1 sees the answer (B76). */
static __always_inline int answers_again(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN &&
	       BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6 &&
	       BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP &&
	       BPF_CORE_READ((struct inet_connection_sock___begun *)sk, icsk_accept_queue.qlen.counter);
}

/* reads_late: what it is set to matters by itself, and not only with what is sent later. */
static __always_inline int reads_late(int level, int option)
{
	return is_membership(level, option) || is_key(level, option) || is_choice(level, option);
}

/* asks_kernel: a tainted container does not set it. */
static __always_inline int asks_kernel(struct sock *sk, int level, int option)
{
	return reads_late(level, option) || is_way(level, option) || answers_again(sk);
}

#endif
