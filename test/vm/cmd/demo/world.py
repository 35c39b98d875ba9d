"""The world outside: an HTTP server, a TCP server that keeps its connection, a UDP server, and an ear for every packet.

It prints one line for each thing that arrives.
"""
import socket
import struct
import sys
import threading
import time

ADDRESS = "10.77.0.2"
SENTINEL = 7999  # of the demo itself


def say(*words):
    sys.stdout.write(" ".join(str(w) for w in words) + "\n")
    sys.stdout.flush()


def http(conn):
    with conn:
        path = conn.recv(4096).decode("ascii", "replace").partition("\r\n")[0].split(" ")[1:2]
        body = f"the world's page {' '.join(path)}\n"
        say("http", *path)
        conn.sendall(f"HTTP/1.0 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def stream(conn):
    with conn:
        conn.settimeout(0.3)
        said = 0
        while True:
            try:
                said += 1
                conn.sendall(b"news %d\n" % said)
                got = conn.recv(4096)
                if not got:
                    break
                say("stream", got.decode("ascii", "replace").strip())
                time.sleep(0.3)
            except TimeoutError:
                continue
            except OSError:
                break


def serve(port, handle):
    server = socket.create_server((ADDRESS, port))

    def accept():
        while True:
            conn, _ = server.accept()
            threading.Thread(target=handle, args=(conn,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def datagrams():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((ADDRESS, 7001))

    def receive():
        while True:
            say("udp", server.recv(4096).decode("ascii", "replace").strip())

    threading.Thread(target=receive, daemon=True).start()


def listen(ear):
    while True:
        frame, (_, kind, direction, *_) = ear.recvfrom(65535)
        if direction == socket.PACKET_OUTGOING or kind == 0x0806:  # ARP
            continue
        protocol, start = frame[23], 14 + (frame[14] & 15) * 4
        port = struct.unpack_from("!H", frame, start + 2)[0] if protocol in (6, 17) else 0
        if protocol == 6:
            data = struct.unpack_from("!H", frame, 16)[0] - (start - 14) - (frame[start + 12] >> 4) * 4
            reset = frame[start + 13] & 4
            if reset and data == 0:
                say("reset", port)  # the kernel itself says that nobody is there
                continue
        if port == SENTINEL:
            say("sentinel", frame[start + 8:].decode("ascii", "replace").strip("\0"))
        else:
            say("packet", {6: "tcp", 17: "udp"}.get(protocol, protocol), port)


ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
ear.bind(("wv1", 0))
serve(80, http)
serve(7000, stream)
datagrams()
say("ready")
listen(ear)
