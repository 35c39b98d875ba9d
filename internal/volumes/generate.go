package volumes

//go:generate go tool bpf2go -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" -target amd64 -strip llvm-strip -type volume_key -type volume_record -type volume_change -type volume_filter -type volume_bits -type volume_use volumes ../../bpf/volumes.bpf.c
