/*
 * raw_call.h - a system call, for what has no C library
 *
 * call() returns what the kernel does: a negative errno. Five arguments are enough for all of ours. There is no other processor: where
 * this does not compile, neither brig-init nor the early way of `brig run` can be (CMakeLists.txt).
 */
#pragma once
#include <asm/unistd.h>

#if defined(__x86_64__)
static long call(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8")   = e;
	long          r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static long call(long nr, long a, long b, long c, long d, long e)
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
