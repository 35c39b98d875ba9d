package exec

//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type exec -type exec_flag -type counter -type state_flag exec ../../bpf/exec.bpf.c
