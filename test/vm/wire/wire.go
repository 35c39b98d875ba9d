// Package wire has the lines that tests in a VM exchange with the programs of test/vm/attack. It owns the types and nothing else.
package wire

// Order asks the receiver for something.
type Order struct {
	ID  int    `json:"id"`
	Op  string `json:"op"`  // listen, or dial: connect, say hello and read one answer
	Net string `json:"net"` // tcp, mptcp, udp, udp-shared, tcp-group, udp-group, sctp, dccp, vsock, tipc, unix, unixgram, unixpacket, netlink
	At  string `json:"at"`  // ADDR:PORT, a path or @name, a port or service number, a netlink protocol
}

// Arrival is one thing that reached the receiver, or, if ID is set, its answer to an order.
type Arrival struct {
	ID    int    `json:"id,omitempty"`
	Error string `json:"error,omitempty"` // why the order failed
	At    string `json:"at,omitempty"`    // where it listens

	Via      string `json:"via,omitempty"`      // packet, kernel for what the sender's kernel says by itself, or what Net says
	Proto    int    `json:"proto,omitempty"`    // IP protocol of a packet, or its EtherType if it is not IP
	From     int    `json:"from,omitempty"`     // source port of a packet
	Port     int    `json:"port,omitempty"`     // destination port of a packet, or where a socket listens
	Flags    int    `json:"flags,omitempty"`    // of a TCP packet
	Class    int    `json:"class,omitempty"`    // traffic class of a packet, which IPv4 calls its type of service
	Window   int    `json:"window,omitempty"`   // of a TCP packet
	Payload  int    `json:"payload,omitempty"`  // bytes that a TCP packet carries
	Fragment bool   `json:"fragment,omitempty"` // a packet that is part of one
	Text     string `json:"text,omitempty"`     // the bytes, with dots for what is not printable ASCII
}

// Command asks the agent to start a program, or, with Running set, to do something to one.
type Command struct {
	ID     int      `json:"id"`             // of the program, chosen by the asker
	Argv   []string `json:"argv,omitempty"` // start it
	Env    []string `json:"env,omitempty"`  // in addition to the agent's own
	Input  string   `json:"input,omitempty"`
	Close  bool     `json:"close,omitempty"`  // close its standard input, after Input
	Signal int      `json:"signal,omitempty"` // send it
}

// Report is what the agent says of a program it started.
type Report struct {
	ID     int    `json:"id"`
	Pid    int    `json:"pid,omitempty"` // it has started
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	Exit   int    `json:"exit,omitempty"`  // when Ended: its status, or 128 and the signal
	Error  string `json:"error,omitempty"` // when Ended: why it did not start
}
