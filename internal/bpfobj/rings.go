package bpfobj

import "github.com/cilium/ebpf"

// Resize gives the rings of a spec another size: bytes, a power of two and of whole pages; 0: as they were built.
func Resize(spec *ebpf.CollectionSpec, bytes uint32) {
	for _, m := range spec.Maps {
		if bytes != 0 && m.Type == ebpf.RingBuf {
			m.MaxEntries = bytes
		}
	}
}
