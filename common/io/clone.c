#define _GNU_SOURCE
#include "clone.h"
#include "sys.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

static bool may_retry_clone_after_delay(int group, int tries)
{
	if (errno != EACCES || group < 0 || tries >= CLONE_LENT_MS)
		return false;
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return true;
}

static struct clone_args args_with_group(const struct clone_args *args, int group)
{
	struct clone_args all = *args;

	if (group >= 0) {
		all.flags |= CLONE_INTO_CGROUP;
		all.cgroup = (uint64_t)group;
	}
	return all;
}

pid_t clone_into_group(const struct clone_args *args, int group)
{
	struct clone_args all = args_with_group(args, group);
	pid_t             pid;

	for (int tries = 0; (pid = clone3(&all, sizeof all)) < 0 && may_retry_clone_after_delay(group, tries); tries++)
		;
	return pid;
}

/*
 * The child begins at the top of its own stack, where it finds nothing of the caller's frames: it calls run(arg) and
 * never returns into C code that the caller will return from, too. The kernel's answer or -errno.
 */
static long clone3_onto_stack(const struct clone_args *args, void (*run)(void *arg), void *arg)
{
#if defined(__x86_64__)
	long           r = SYS_clone3;
	register void (*r12)(void *) __asm__("r12") = run;
	register void *r13 __asm__("r13") = arg;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "ud2\n"
			 "1:"
			 : "+a"(r)
			 : "D"(args), "S"(sizeof *args), "r"(r12), "r"(r13)
			 : "rcx", "r11", "memory", "cc");
	return r;
#elif defined(__aarch64__)
	register long  x8 __asm__("x8") = SYS_clone3;
	register long  x0 __asm__("x0") = (long)args;
	register long  x1 __asm__("x1") = sizeof *args;
	register void (*x9)(void *) __asm__("x9") = run;
	register void *x10 __asm__("x10") = arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "brk #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x9), "r"(x10)
			 : "x30", "memory", "cc");
	return x0;
#endif
}

enum { STACK_BYTES = 128 * 1024, GUARD_BYTES = 64 * 1024 };

/* One for the process: it has one such child at a time. Pages below it must not be touched. NULL with errno. */
static char *get_child_stack(void)
{
	static char *stack;
	char        *at;

	if (!stack) {
		at = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
		if (at == MAP_FAILED)
			return NULL;
		if (mprotect(at + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) < 0) {
			munmap(at, GUARD_BYTES + STACK_BYTES);
			return NULL;
		}
		stack = at + GUARD_BYTES;
	}
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(stack, STACK_BYTES); /* of the frames of the last child, which never returned */
#endif
	return stack;
}

static pid_t clone_onto_own_stack(struct clone_args all, int group, void (*run)(void *arg), void *arg)
{
	char *stack = get_child_stack();
	long  r;

	if (!stack)
		return -1;
	all.stack      = (uint64_t)(uintptr_t)stack;
	all.stack_size = STACK_BYTES;
	for (int tries = 0; (r = clone3_onto_stack(&all, run, arg)) < 0; tries++) {
		errno = (int)-r;
		if (!may_retry_clone_after_delay(group, tries))
			return -1;
	}
	return (pid_t)r;
}

#ifdef __SANITIZE_ADDRESS__
/*
 * AddressSanitizer knows one stack of the thread that parent and child are to it. It prints a warning where a function
 * that does not return is called on another one, and whatever reads the log need not read it.
 */
struct known_stack {
	void (*run)(void *arg);
	void       *arg;
	const void *parents;
	size_t      parents_size;
	bool        is_childs;
};

static void run_on_known_stack(void *arg)
{
	struct known_stack *s = arg;

	__sanitizer_finish_switch_fiber(NULL, &s->parents, &s->parents_size);
	s->is_childs = true;
	s->run(s->arg);
}

/* The parent waits until the child has executed a program or ended. */
static pid_t clone_and_wait(const struct clone_args *all, int group, void (*run)(void *arg), void *arg)
{
	struct known_stack s    = { .run = run, .arg = arg };
	void              *fake = NULL;
	pid_t              pid;

	__sanitizer_start_switch_fiber(&fake, get_child_stack(), STACK_BYTES);
	pid = clone_onto_own_stack(*all, group, run_on_known_stack, &s);
	if (!s.is_childs)
		__sanitizer_finish_switch_fiber(NULL, &s.parents, &s.parents_size);
	__sanitizer_start_switch_fiber(NULL, s.parents, s.parents_size);
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
	return pid;
}
#else
static pid_t clone_and_wait(const struct clone_args *all, int group, void (*run)(void *arg), void *arg)
{
	return clone_onto_own_stack(*all, group, run, arg);
}
#endif

pid_t clone_sharing_memory(const struct clone_args *args, int group, void (*run)(void *arg), void *arg)
{
	struct clone_args all = args_with_group(args, group);

	all.flags |= CLONE_VM | CLONE_VFORK;
	return clone_and_wait(&all, group, run, arg);
}

pid_t clone_beside(const struct clone_args *args, void (*run)(void *arg), void *arg)
{
	struct clone_args all = *args;

	all.flags |= CLONE_VM;
	return clone_onto_own_stack(all, -1, run, arg);
}
