package secretfiles

import (
	"encoding/binary"
	"strings"

	"weir/internal/policy"
)

const part = 32 // bytes of each end of a name that the kernel compares

// nameOf is a name with at most one * as the kernel compares it.
func nameOf(s string) filesSecretName {
	head, tail, star := strings.Cut(s, "*")
	if !star {
		head, tail = s[:min(len(s), part)], s[max(0, len(s)-part):]
	}
	n := filesSecretName{Length: uint32(len(head) + len(tail))}
	if !star {
		n.Exact, n.Length = 1, uint32(len(s))
	}
	n.Head, n.HeadMask = words([]byte(head), 0)
	n.Tail, n.TailMask = words([]byte(tail), part-len(tail))
	return n
}

// words puts text at an offset of a block of zeros, and tells where it stands.
func words(text []byte, at int) (value, mask [part / 8]uint64) {
	var v, m [part]byte
	for i, c := range text {
		v[at+i], m[at+i] = c, 0xff
	}
	for w := range value {
		value[w], mask[w] = binary.NativeEndian.Uint64(v[w*8:]), binary.NativeEndian.Uint64(m[w*8:])
	}
	return value, mask
}

// names numbers the names of a list; bit n of a mask stands for the nth.
func names(list []policy.SecretFile) (all []string, anywhere uint32) {
	for _, s := range list {
		if s.Name == "" {
			continue
		}
		bit := bitOf(&all, s.Name)
		if s.Dir == "" {
			anywhere |= bit
		}
	}
	return all, anywhere
}

func bitOf(all *[]string, name string) uint32 {
	for i, n := range *all {
		if n == name {
			return 1 << i
		}
	}
	*all = append(*all, name)
	return 1 << (len(*all) - 1)
}

// lengths marks the lengths of names that count anywhere, and of those with a star that count in some directory.
func lengths(list []policy.SecretFile, anywhere, starred *[4]uint64) {
	for _, s := range list {
		into := anywhere
		n := nameOf(s.Name)
		if s.Name == "" || s.Dir != "" && n.Exact != 0 {
			continue
		}
		if s.Dir != "" {
			into = starred
		}
		for length := n.Length; length <= 255; length++ {
			into[length/64] |= 1 << (length % 64)
			if n.Exact != 0 {
				break
			}
		}
	}
}

// mark sets the bits of an inode in the filter, as the kernel computes them. names are those that node's bits stand for.
func mark(f *filesSecretFilter, inode uint64, node filesSecretNode, names []string) {
	if at := inode * spread >> 49; node.Self|node.Below != 0 {
		f.Bits[at>>6] |= 1 << (at & 63)
	}
	for i, name := range names {
		if node.Names>>i&1 != 0 {
			at := place(inode, nameOf(name))
			f.Places[at>>6] |= 1 << (at & 63)
		}
	}
}

// spread is 2^64 divided by the golden ratio: it sends neighbours far apart (D. Knuth, The Art of Computer Programming 3, 6.4).
const spread = 0x9e3779b97f4a7c15

// place is the bit of a directory and the length of a name that counts there, 0 if it has a star; as has_names of files.bpf.c.
func place(inode uint64, n filesSecretName) uint64 {
	var length uint64
	if n.Exact != 0 {
		length = uint64(n.Length)
	}
	return (inode ^ length<<48) * spread >> 52
}
