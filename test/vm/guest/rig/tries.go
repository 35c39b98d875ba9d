//go:build vmguest

package rig

// Tries is a program for python3 -c, with an address, a port and a text: it connects until it is let, sends the text, and says how often
// it was refused. Its question outlives the daemon that asked it.
const Tries = `
import socket, sys, time
host, port, text = sys.argv[1:]
refused = 0
while True:
    try:
        s = socket.create_connection((host, int(port)))
        break
    except PermissionError:
        refused += 1
        time.sleep(0.1)
s.sendall(text.encode())
print("sent", refused)
`
