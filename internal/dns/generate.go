package dns

//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type alias_key -type alias -type real_key -type real -type resolver_key -type resolver -type lease_key -type lease names ../../bpf/names.bpf.c
