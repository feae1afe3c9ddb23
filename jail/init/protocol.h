/*
 * protocol.h - what PID 1 of a cell and its launcher say to each other.
 *
 * PID 1 is executed with empty words, no environment and these descriptors:
 * everything it needs to know is a number here.
 */
#pragma once
#include <stdint.h>

enum {
	INIT_FD_STATUS = 3, /* socket to the launcher: one init_report, then end of file; from it the status (int) of a zygote's fork */
	INIT_FD_READY  = 4, /* pipe to the waiting program: one byte when PID 1 is as hard as it gets */
	INIT_FD_SLOT   = 5, /* held open, never used: the cell's ids stay taken while it lives */
};

/* So many words say that the program is no child of PID 1, but a zygote's; fewer, that it is. (A kernel makes one of none.) */
enum { INIT_WORDS_WARM = 2 };

/* Of /tmp, /dev/shm, /workspace, in this order: what was left when the program ended. */
enum { INIT_MOUNTS = 3 };

struct init_report {
	int32_t  status; /* as from wait4() */
	uint32_t mounts_read;
	uint64_t free_bytes[INIT_MOUNTS], free_inodes[INIT_MOUNTS];
};
