package dns

//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type fake_ip_key -type fake_ip -type fake_target_key -type fake_target -type resolver_key -type resolver -type resolver_flag -type lease_key -type lease names ../../bpf/names.bpf.c
