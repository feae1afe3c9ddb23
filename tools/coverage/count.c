/*
 * Of compiler-rt, which comes with clang, nothing runs by itself: its own start-up makes files that a later process of
 * another user cannot open, and its end is never reached by who is killed or leaves with _exit().
 */
#define _GNU_SOURCE
#include "count.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* compiler-rt/lib/profile/InstrProfiling.h */
extern int         __llvm_profile_write_buffer(char *buffer);
extern uint64_t    __llvm_profile_get_size_for_buffer(void);
extern uint64_t    __llvm_profile_get_magic(void);
extern char       *__llvm_profile_begin_counters(void), *__llvm_profile_end_counters(void);
extern const char *__llvm_profile_begin_names(void), *__llvm_profile_end_names(void);
/* Added to where a counter is, for each count. */
extern intptr_t __llvm_profile_counter_bias __attribute__((visibility("hidden")));
/* Who has it starts compiler-rt himself. */
int __llvm_profile_runtime;

/* The counters come before the names, which are filled up to a word and are the last. */
static size_t counters_at(size_t len)
{
	size_t counters = (size_t)(__llvm_profile_end_counters() - __llvm_profile_begin_counters());
	size_t names    = (size_t)(__llvm_profile_end_names() - __llvm_profile_begin_names());

	return len - (names + 7) / 8 * 8 - counters;
}

/* Two that begin at once write the same. */
static char *map(int fd, size_t len)
{
	struct stat st;
	char       *file;

	if (fstat(fd, &st) < 0 || (st.st_size == 0 && ftruncate(fd, (off_t)len) < 0) || (st.st_size && (size_t)st.st_size != len))
		return MAP_FAILED;
	file = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file != MAP_FAILED && *(uint64_t *)file != __llvm_profile_get_magic())
		__llvm_profile_write_buffer(file);
	return file;
}

void count_in(int fd)
{
	size_t len  = __llvm_profile_get_size_for_buffer();
	char  *file = map(fd, len);

	close(fd);
	if (file != MAP_FAILED)
		__llvm_profile_counter_bias = file + counters_at(len) - __llvm_profile_begin_counters();
}
