package netegress

//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type dest -type prefix -type rules -type policy -type settings -type grant -type grant_dest -type mark -type claim_key -type claim -type hold_key -type hold -type refusal -type record -type record_kind -type reason -type counter -type mode -type policy_flag -type hold_state -type state_flag -type claim_kind -type dest_use egress ../../bpf/egress.bpf.c
//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type trust packet ../../bpf/packet.bpf.c
//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type unix_peer -type unix_listed -type unix_how -type call peers ../../bpf/peers.bpf.c
//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip versions ../../bpf/versions.bpf.c
