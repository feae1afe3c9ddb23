/*
 * heap.h - the memory of a zygote as its forks are to find it
 *
 * A fork copies one table entry for each page that is there, and its end
 * drops one for each. Nothing here can fail: what cannot be had is left.
 */
#pragma once
#include <stdint.h>

enum { HEAP_HUGE_BITS = 21 };

/* What has been freed goes back to the kernel. */
void heap_trim(void);
/* This huge page's worth of addresses, of which any part may be mapped or not: one entry instead of 512. */
void heap_collapse(uintptr_t number);
/*
 * The interpreter's code and constants lie in huge pages of their own, at the same addresses: a fork copies an entry for each, and maps
 * no page of the file anew. They are executable then, constants too, as both lie in one page.
 */
void heap_copy_text(void);
