/*
 * heap.h - arranges the memory of a zygote so that forks are cheap
 *
 * A fork copies one page table entry for each mapped page, and drops each at its end. No
 * function here fails: what the kernel refuses stays as it was.
 */
#pragma once
#include <stdint.h>

enum { HEAP_HUGE_BITS = 21 };

/* Gives freed memory back to the kernel. */
void heap_trim(void);
/* Makes the addresses from number << HEAP_HUGE_BITS on one huge page: one entry instead of 512. Some may be unmapped. */
void heap_collapse_huge_page(uintptr_t number);
/*
 * Copies the interpreter's code and constants into huge pages of their own, at the same addresses: a fork copies one
 * entry for each, and maps no page of the file anew. The constants become executable, too, because they share pages
 * with code.
 */
void heap_remap_text_on_huge_pages(void);
