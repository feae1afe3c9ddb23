#include "heap.h"

#include <malloc.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; glibc has it from 2.37 on */
#endif

void heap_trim(void)
{
	malloc_trim(0);
}

void heap_collapse(uintptr_t number)
{
	madvise((void *)(number << HEAP_HUGE_BITS), (size_t)1 << HEAP_HUGE_BITS, MADV_COLLAPSE);
}
