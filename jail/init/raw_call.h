/*
 * raw_call.h - a system call, for programs without a C library
 *
 * raw_call() returns the kernel's result: a negative errno after failure. No caller needs more than five arguments. For
 * other processors neither brig-init nor the early part of `brig run` can be built (CMakeLists.txt).
 */
#pragma once
#include <asm/unistd.h>

#if defined(__x86_64__)
static long raw_call(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8")   = e;
	long          r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static long raw_call(long nr, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
	return x0;
}
#else
#error "system calls without a C library are known of x86_64 and aarch64"
#endif
