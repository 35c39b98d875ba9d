import socket, struct, sys

# A rule of the host that rewrites sources, or rejects what goes to a port: nft.py RULE PORT, or nft.py delete.

def attr(kind, data):
    n = len(data) + 4
    return struct.pack("HH", n, kind) + data + bytes(-n % 4)

def nest(kind, *parts):
    return attr(kind | 0x8000, b"".join(parts))

def text(kind, s):
    return attr(kind, s.encode() + bytes(1))

def number(kind, n):
    return attr(kind, struct.pack(">I", n))

def message(kind, flags, family, body=b"", subsystem=0):
    return struct.pack("IHHII", 20 + len(body), kind, flags, 1, 0) + struct.pack(">BBH", family, 0, subsystem) + body

def expression(name, *data):
    return nest(1, text(1, name), nest(2, *data))

NEW, NEWTABLE, DELTABLE, NEWCHAIN, NEWRULE = 0x401, 0xa00, 0xa02, 0xa03, 0xa06
rule = sys.argv[1]
batch = []
if rule == "delete":
    for family in (2, 10):
        batch.append([message(DELTABLE, 1 | 4, family, text(1, "hidden"))])
else:
    family = 10 if rule[-1] == "6" else 2
    if rule.startswith("masquerade"):
        kind, hook, priority, expressions = "nat", 4, 100, [expression("masq")]
    else:
        port = struct.pack(">H", int(sys.argv[2]))
        kind, hook, priority, expressions = "filter", 3, 0, [
            expression("payload", number(1, 1), number(2, 2), number(3, 2), number(4, 2)),
            expression("cmp", number(1, 1), number(2, 0), nest(3, attr(1, port))),
            expression("reject", number(1, 0), attr(2, bytes([4 if family == 10 else 3]))),
        ]
    batch.append([
        message(NEWTABLE, NEW | 4, family, text(1, "hidden")),
        message(NEWCHAIN, NEW | 4, family, text(1, "hidden") + text(3, "all") + nest(4, number(1, hook), number(2, priority)) + text(7, kind)),
        message(NEWRULE, NEW | 4, family, text(1, "hidden") + text(2, "all") + nest(4, *expressions)),
    ])
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
s.bind((0, 0))
for messages in batch:
    s.send(message(16, 1, 0, subsystem=10) + b"".join(messages) + message(17, 1, 0, subsystem=10))
    for _ in messages:
        error = struct.unpack_from("i", s.recv(4096), 16)[0]
        if error and rule != "delete":
            sys.exit("nft: error %d" % -error)
