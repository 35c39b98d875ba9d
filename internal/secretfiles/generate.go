package secretfiles

//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type secret_filter -type secret_list -type secret_key -type secret_node -type secret_name_key -type secret_name -type secret_open -type secret_how -type inode_id -type inode_query files ../../bpf/files.bpf.c
