#include "textflag.h"

// func int80(nr, a, b, c, d, e uint32) int32
TEXT ·int80(SB), NOSPLIT, $0-28
	MOVL nr+0(FP), AX
	MOVL a+4(FP), BX
	MOVL b+8(FP), CX
	MOVL c+12(FP), DX
	MOVL d+16(FP), SI
	MOVL e+20(FP), DI
	INT  $0x80
	MOVL AX, ret+24(FP)
	RET

#define CLONE_VM_SIGCHLD 0x111
#define SYS_sendto 44
#define SYS_clone 56
#define SYS_exit 60

// func twinSend(stack uintptr, fd int, text *byte, n int, address *byte, length int) int
TEXT ·twinSend(SB), NOSPLIT, $0-56
	MOVQ fd+8(FP), R12
	MOVQ text+16(FP), R13
	MOVQ n+24(FP), BX
	MOVQ address+32(FP), R9
	MOVQ length+40(FP), R15
	MOVQ $CLONE_VM_SIGCHLD, DI
	MOVQ stack+0(FP), SI
	XORQ DX, DX
	XORQ R10, R10
	XORQ R8, R8
	MOVQ $SYS_clone, AX
	SYSCALL
	TESTQ AX, AX
	JZ   child
	MOVQ AX, ret+48(FP)
	RET
child:
	MOVQ R12, DI
	MOVQ R13, SI
	MOVQ BX, DX
	XORQ R10, R10
	MOVQ R9, R8
	MOVQ R15, R9
	MOVQ $SYS_sendto, AX
	SYSCALL
	XORQ DI, DI
	TESTQ AX, AX
	JNS  end
	SUBQ AX, DI
end:
	MOVQ $SYS_exit, AX
	SYSCALL
	INT  $3
