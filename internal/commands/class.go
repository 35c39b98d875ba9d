package commands

// Class is the tier of a command (G4 to G8). The zero value is grey, which never
// opens anything by itself.
type Class uint8

const (
	Grey    Class = iota // nothing is proved
	Local                // provably neither reaches the network nor runs code that cannot be seen (G5)
	Network              // known to reach the network or to run any code (G6)
)

func (c Class) String() string {
	switch c {
	case Local:
		return "local"
	case Network:
		return "network"
	}
	return "grey"
}

// Flags are facts about a command that later stages want to know.
type Flags uint16

const (
	Install  Flags = 1 << iota // puts software on the machine: apt install, pip install
	Runtime                    // runs a program in a general language: python, node
	Upload                     // can send data out: scp, curl -T
	Download                   // fetches data: wget, git clone
	Encoder                    // changes how data looks: base64, xxd, gzip, openssl enc
	Listen                     // opens a listening socket: nc -l
	Shell                      // is a shell: bash, busybox sh
)
