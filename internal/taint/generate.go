package taint

//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type abi -type state -type state_change -type state_flag -type record -type record_kind -type settings -type initial_taint_key cgroup ../../bpf/cgroup.bpf.c
