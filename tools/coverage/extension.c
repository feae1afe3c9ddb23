/* extension.c - what a zygote's Python loads counts in the file that it was born with, and so do all of its forks */
#include "count.h"
#include "zygote.h"

__attribute__((constructor)) static void count(void)
{
	count_in(COVERAGE_ZYGOTE_FD);
}
