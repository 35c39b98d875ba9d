/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs and the daemon share: the values of maps and the records
 * of rings. bpf2go turns these into Go types; there is no second definition. */
#ifndef WEIR_TYPES_H
#define WEIR_TYPES_H

/* Pins of another version are never adopted: raise it with every change of a pinned map. */
enum abi { ABI_VERSION = 18 };

/* Levels of the cgroup tree that a program walks, the root being level 0.
 * What lies deeper inside a guarded parent is denied (B53). */
#define MAX_LEVEL 16

enum taint_bit {
	TAINT_CORRUPTION = 1,
	TAINT_SECRET = 2,
};

enum state_flag {
	STATE_PARENT = 1, /* its children are containers */
	STATE_GRANT = 2,  /* a command that is held or was let out lives here */
	STATE_ALONE = 4,  /* itself a container, wherever it stands */
	STATE_LATE = 8,   /* a container that may have run before it was guarded */
	STATE_DOUBT = 16, /* somebody outside has an end of its Unix sockets that nobody noted: no room */
};

/* One cgroup. An absent entry is a cgroup that adds nothing. */
struct state {
	enum taint_bit taint; /* OR of them */
	enum state_flag flags;
	__u32 policy; /* slot in policies; 0: as its parent */
	__u32 agent;  /* thread group that commands descend from; 0: as its parent */
	__u64 grant;  /* key of grants, with STATE_GRANT; absent there while the command is held */
};

#define CGROUP_NAME 120

/* A cgroup that is to be made below a guarded parent; without a name: each of its children. */
struct initial_taint_key {
	__u64 parent;
	char name[CGROUP_NAME]; /* the start of it, if it is longer */
};

enum mode {
	MODE_ENFORCE = 0,
	MODE_OBSERVE = 1,
	MODE_SEAL = 2,
};

enum policy_flag {
	POLICY_HOLD = 1,
	POLICY_ASK = 2,    /* somebody answers: a reviewer or a person */
	POLICY_REVIEW = 4, /* commands are held when they are executed, too */
	POLICY_TRUST = 8,  /* untrusted destinations taint */
};

struct policy {
	enum mode mode;
	enum policy_flag flags;
	__u32 generation; /* of its entries in destinations, unix_peers and trusted */
	__u32 used;
	__s64 reply_budget; /* bytes that a socket may send once it has tainted */
};

/* The last heartbeat of a daemon that closed its control socket without having ended in
 * order: it was killed, and nobody need wait until its own is old. */
#define HEARTBEAT_GONE 1

#define MAX_PROCESSORS 8

struct settings {
	__u64 heartbeat; /* ns since boot, written by the daemon twice a second; see HEARTBEAT_GONE */
	__u64 control;   /* cookie of the control socket: no guarded process connects (B27) */
	__u64 key[2];    /* secret of the argv hash: nobody can make a command that collides (B36) */
	__u32 daemon; /* its thread group: the only one to move tasks into a grant (B37); 0: no daemon runs */
	enum abi abi;
	__u32 levels; /* bit n: a guarded parent stands n levels below the root; all: they are not known */
	__u32 pad;
	__u64 parents;                    /* one bit of 64 for each guarded parent, by a hash of its id */
	__u16 processors[MAX_PROCESSORS]; /* major numbers that drivers of processors were given; 0: none */
};

/* A destination: IPv4 is mapped into IPv6 (B14), the port is in host order. */
struct dest {
	__u8 addr[16];
	__u16 port;
	__u8 proto;
	__u8 pad;
};

/* Allowed destinations of a policy: longest prefix of (policy, generation, address). */
struct prefix {
	__u32 bits; /* 64 + prefix length */
	__u32 policy;
	__u32 generation;
	__u8 addr[16];
};

struct rule {
	__u8 proto; /* 0: any */
	__u8 pad;
	__u16 low, high;
};

#define MAX_RULES 16

struct rules {
	__u32 count;
	struct rule rule[MAX_RULES];
};

/* An allowed name led a container to an address: open until then. */
struct lease_key {
	__u64 container;
	__u8 addr[16];
};

struct lease {
	__u64 expires; /* ns since boot */
	struct rules rules;
	__u32 pad;
};

/* An address that stands for a name in one container, for as long as that lives. */
struct fake_ip_key {
	__u64 container;
	__u8 addr[16];
};

#define NAME_SIZE 256

struct fake_ip {
	char name[NAME_SIZE]; /* without the last dot */
};

/* Where such an address leads under a grant; with grant 0, while nothing stands against the container. */
struct fake_target_key {
	__u64 grant;
	__u64 container;
	__u8 addr[16];
};

struct fake_target {
	__u8 addr[16];
};

/* Who answers the DNS questions of a tainted container, in one of its network namespaces, on loopback. */
struct resolver_key {
	__u64 container;
	__u64 netns; /* cookie */
};

enum resolver_flag {
	RESOLVER_SIX = 1,    /* it is on ::1, too */
	RESOLVER_SENDS = 2,  /* datagrams that bear an address of their own are led to it */
	RESOLVER_WANTED = 4, /* one was not */
};

struct resolver {
	__u32 port;
	enum resolver_flag flags;
};

/* What is known of a Unix socket. Absent: it belongs to its cgroup's container, unless that was guarded late.
 */
enum unix_end {
	UNIX_OUTSIDE = 1, /* somebody outside has it, or its other end */
	UNIX_OWN = 2,     /* made under guard, or found to be the container's alone */
	UNIX_LISTED = 3,  /* connected to a listed peer outside: sends while that is listed */
};

/* Who may be heard under a listed name: another process can bind the same one below a root of its own. */
enum unix_how {
	LISTED_PEER = 1, /* whoever is not guarded and has bound it, a path in that directory of the host's */
	LISTED_OWN = 2,  /* the daemon */
};

struct unix_listed {
	enum unix_how how;
	__u32 device;    /* of the directory that the path leads to; 0: it leads nowhere */
	__u64 directory; /* its inode, see directory_of */
};

#define UNIX_PATH 108

struct unix_peer {
	__u32 policy;
	__u32 generation;
	char path[UNIX_PATH]; /* @ stands for the zero byte of an abstract name */
};

struct grant {
	__u64 expires; /* ns since boot */
	__s64 bytes;   /* left of the budget */
	__u32 owner;   /* thread group whose sockets are marked; 0: whoever is in its cgroup */
	__u32 closing; /* its command has ended: what is queued may leave, nothing new */
	__u32 taint;   /* that it was given under: it opens nothing under more */
	__u32 top; /* the command that was let into its cgroup, by its topmost process; for the daemon's books
	            */
	__u64 container; /* with OWNER_ANYBODY */
};

#define OWNER_ANYBODY (~0U) /* whoever has a socket that is marked with the grant */

struct grant_dest {
	__u64 grant;
	struct dest dest;
	__u32 pad;
};

/* What became of a granted destination: a client that gave up while it was
 * held has sent nothing there, and may try once more (G15). */
enum dest_use {
	DEST_OPEN = 1,
	DEST_USED = 2,
};

#define MARK_TOLD 1   /* a dropped packet of this socket was reported */
#define MARK_ASTRAY 2 /* a message on it chose its device or mark (B89) */
#define MARK_FLAGS 2  /* bits */

/* Above all generations: a datagram socket may have got a source (B140), or a peer (B141). */
#define MARK_SOURCED (1U << 31)

/* A socket that was granted, by cookie and in its own storage. */
struct mark {
	__u64 grant;
	struct dest dest;
	__u32
	    told; /* MARK_TOLD; above it, generation of the policy under which an allowed name led to dest */
};

enum claim_kind {
	CLAIM_PROCESS = 0, /* id: start time, tag: thread group, and what it runs above 32 bits */
	CLAIM_COMMAND = 1, /* id: inode, tag: argv hash */
};

/* An approval that waits for its process, or for the same command, to try again. */
struct claim_key {
	__u64 container;
	__u64 id;
	__u64 tag;
	enum claim_kind kind;
	__u32 device;
	struct dest dest;
	__u32 uid;
};

struct claim {
	__u64 grant;
	__u64 expires; /* ns since boot, for the claim itself */
	__u64 ttl;     /* ns that the grant lives once claimed */
	__s64 bytes;
	__u32 taint; /* that it was approved under */
	__u32 pad;
};

/* One question: a process and where it wants to go; nowhere, if it was just executed. */
struct hold_key {
	__u32 tgid;
	struct dest dest;
};

/* How a call waits for its verdict. */
enum hold_state {
	HOLD_FAILED = 0,   /* it does not: it got EPERM, and the question stands */
	HOLD_RESTARTS = 1, /* the kernel restarts it until the daemon has frozen the process */
	HOLD_STOPPED = 2,  /* by SIGSTOP, until the daemon has frozen the process */
	HOLD_FROZEN = 3,   /* the daemon froze the process in a cgroup of its own */
};

struct hold {
	__u64 start; /* of the process, against reuse of its id */
	__u64 since; /* when the question, or the present round of restarts, began */
	enum hold_state state;
	__u32 turn;     /* its place in turns, from 1; 0: none */
	__u32 restarts; /* in this place */
	__u32 pad;
};

/* What was refused, by a verdict or without a question: for a while the same process is not asked about it
 * again, and nobody is told. */
struct refusal {
	__u64 start; /* as of a hold */
	__u64 since;
};

/* What a task runs, set at exec and inherited by fork. */
struct task {
	__u64 exec_start; /* start time and thread group of the process that executed it */
	__u64 inode;
	__u64 argv_hash; /* 0: unknown, or argv was longer than what is read */
	__u64 from;      /* container it is being moved out of, or has left */
	__u64 executes;  /* container that another thread than the first was in when it began to execute; 0:
	                    none does */
	__u32 exec_tgid;
	__u32 device;
	__u32 escaped;  /* left its container: everything is denied until it is killed (B28) */
	__u32 arriving; /* came in from outside and runs what it ran there: until when, s since boot; 0: it
	                   does not */
};

enum record_kind {
	RECORD_HOLD = 1,     /* waits for a verdict: to be frozen */
	RECORD_ASK = 2,      /* refused, the question is asked all the same */
	RECORD_CONNECT = 3,  /* let through, see reason */
	RECORD_DENY = 4,     /* refused, see reason */
	RECORD_CLAIM = 5,    /* an approval was claimed */
	RECORD_DROP = 6,     /* first dropped packet of a socket */
	RECORD_SPENT = 7,    /* the byte budget of a grant is used up */
	RECORD_MKDIR = 8,    /* a cgroup was made */
	RECORD_MOVE = 9,     /* a task was moved into, out of or between containers */
	RECORD_ESCAPE = 10,  /* a task left its container */
	RECORD_INTRUDE = 11, /* somebody else moved a task into a grant: revoked */
	RECORD_EXEC = 12,    /* stopped before its first instruction, waits for a verdict */
	RECORD_TAINT = 13,   /* an untrusted destination tainted; grant goes on */
};

enum reason {
	REASON_NONE = 0,
	REASON_UNTAINTED = 1,
	REASON_LISTED = 2,
	REASON_GRANTED = 3,
	REASON_LOOPBACK = 4,
	REASON_OBSERVED = 5, /* would have been denied */
	REASON_NAMED = 6,    /* an allowed name was resolved to it */
	REASON_TAINTED = 7,
	REASON_SEALED = 8,
	REASON_DEPTH = 9,
	REASON_QUIC = 10,
	REASON_FAMILY = 11,  /* socket family or type not allowed while tainted */
	REASON_OUTSIDE = 12, /* socket or peer from outside the container */
	REASON_CONTROL = 13, /* the sensor's own socket */
	REASON_ATTACH = 14,  /* ptrace and its like */
	REASON_ESCAPED = 15,
	REASON_DENIED = 16,     /* a verdict said no */
	REASON_UNREADABLE = 18, /* address that cannot be parsed */
	REASON_FULL = 19,       /* no room for the question */
	REASON_UNTRUSTED = 20,
	REASON_UNRESOLVED = 21, /* it stands for a name that has no address yet */
	REASON_KERNEL = 22,     /* what the kernel would send by itself */
};

/* What was refused that opens no destination; with REASON_ATTACH and REASON_KERNEL it stands where the
 * protocol of a destination would. */
enum call {
	CALL_PTRACE = 1,
	CALL_SIGNAL = 2,
	CALL_LIMIT = 3,
	CALL_PRIORITY = 4,
	CALL_IPC = 5, /* System V's */
	CALL_KEY = 6,
	CALL_OPTION = 7,
	CALL_REQUEST_KEY = 8,
	CALL_MODULE = 9,
	CALL_PARENT = 10,
	CALL_TUN = 11,
	CALL_IPSEC = 12,
	CALL_NETWORK = 13,
	CALL_LABEL = 14,
	CALL_MOUNT = 15,
};

struct record {
	__u64 time; /* ns since boot */
	__u64 container;
	__u64 cgroup;
	__u64 start;
	__u64 exec_start;
	__u64 inode;
	__u64 argv_hash;
	__u64 grant;
	__u64 cookie;
	__u64 parent; /* cgroup: made under, or moved from */
	enum record_kind kind;
	enum reason reason;
	__u32 tgid;
	__u32 exec_tgid;
	__u32 device;
	__u32 uid;
	__u32 taint;
	__u32 family; /* of a refused socket, with type and protocol in dest */
	struct dest dest;
	__u32 target; /* thread group that was moved or reached; with CALL_OPTION a socket's option */
	char comm[16];
	char path[UNIX_PATH];
};

enum counter {
	COUNT_LOST_EXEC,
	COUNT_LOST_ASK,
	COUNT_LOST_RECORD,
	COUNT_LOST_CGROUP,
	COUNT_LOST_SECRET,
	COUNT_DENIED_CONNECT,
	COUNT_DENIED_SEND,
	COUNT_DENIED_SOCKET,
	COUNT_DENIED_UNIX,
	COUNT_DENIED_RECEIVE,
	COUNT_DENIED_ATTACH,
	COUNT_DROPPED,
	COUNT_HELD,
	COUNT_INTRUDED,
	COUNT_MAX,
};

#endif
