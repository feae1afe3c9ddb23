/* count.h - the counters of a coverage build lie in a file: whatever ends a process, they are there */
#pragma once

/*
 * From here on this process, and all that it forks, count in the file. Takes `fd` over. A file that is empty gets what
 * llvm-profdata reads, one of another program is left alone, and so is a failure: the program runs uncounted.
 */
void count_in(int fd);
