#define _GNU_SOURCE
#include "heap.h"

#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; glibc has it from 2.37 on */
#endif

void heap_trim(void)
{
	malloc_trim(0);
}

void heap_collapse_huge_page(uintptr_t number)
{
	madvise((void *)(number << HEAP_HUGE_BITS), (size_t)1 << HEAP_HUGE_BITS, MADV_COLLAPSE);
}

/* --- text --- */

struct span {
	uintptr_t begin, end;
};

/* The first object is the program itself. Its segments without PF_W are adjacent and come first. */
static int find_text_segment(struct dl_phdr_info *info, size_t size, void *to)
{
	struct span *text = to;

	(void)size;
	*text = (struct span){ 0, 0 };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t         begin   = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		if (segment->p_flags & PF_W)
			break;
		if (!text->begin)
			text->begin = begin;
		text->end = begin + segment->p_filesz;
	}
	return 1;
}

static char *mmap_aligned(size_t len, size_t to)
{
	char *all = mmap(NULL, len + to, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at;

	if (all == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)all + to - 1) & ~(to - 1));
	if (at > all)
		munmap(all, (size_t)(at - all));
	munmap(at + len, (size_t)(all + to - at));
	return at;
}

void heap_remap_text_on_huge_pages(void)
{
	const size_t huge = (size_t)1 << HEAP_HUGE_BITS;
	struct span  text;
	uintptr_t    begin, end;
	char        *copy;

	dl_iterate_phdr(find_text_segment, &text);
	begin = (text.begin + huge - 1) & ~(huge - 1);
	end   = text.end & ~(huge - 1);
	copy  = begin < end ? mmap_aligned(end - begin, huge) : NULL;
	if (!copy)
		return;
	memcpy(copy, (const void *)begin, end - begin);
	if (madvise(copy, end - begin, MADV_COLLAPSE) < 0 || mprotect(copy, end - begin, PROT_READ | PROT_EXEC) < 0 ||
	    mremap(copy, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin) == MAP_FAILED)
		munmap(copy, end - begin);
}
