/*
 * early.h - the state of a plain `brig run` that began before the C library was initialised
 *
 * Starting a C library costs more than everything that brig itself does for a run. So brig's entry point is early_start
 * (early/early.c), which uses no library: it sends the request to the service and passes output on. When a run is not exactly the
 * plain case, or stops being it, early.c leaves its state in `early_run` and jumps to the C library's own entry point. main() then
 * starts the run itself, or takes it up where early.c stopped (foreground_run_adopt_early()).
 *
 * Where brig is linked dynamically, early.c is not used, and `connected` stays false.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream_rest.h"

enum { EARLY_ID_LEN = 36, EARLY_DATAGRAM_MAX = 64 * 1024, EARLY_FDS_MAX = 5 }; /* RUN_ID_LEN, PROTOCOL_MAX and DATAGRAM_FDS_MAX */
#define EARLY_WAIT_MS 60000 /* the default of --wait: how long a run waits when a quota is used up */

struct early_stream {
	int      fd; /* -1: end of file */
	int      broken; /* this and the rest are as in struct stream */
	bool     unread;
	uint64_t seen;
	unsigned little; /* stream_rest.h */
	const char *rest; /* what was read, counted in seen, and not written when a signal came */
	size_t      rest_len;
	struct stream_last end;
};

struct early {
	bool        connected; /* sock is connected, privilege is dropped, and the program's file was read */
	bool        sent;
	bool        started;   /* run, keep and the streams are known */
	bool        masked;    /* the signals that end a run are blocked; mask is the signal mask from before */
	int         sock;
	const char *name;      /* the socket's path */
	char        run[EARLY_ID_LEN + 1];
	uint64_t    keep;
	uint64_t    mask;
	struct early_stream out, err;
	int         lost;      /* errno of a receive that failed; 0: none did */
	size_t      len, fds;  /* of a datagram that was received and is left to foreground_run.c; 0: none */
	int         fd[EARLY_FDS_MAX];
	char        text[EARLY_DATAGRAM_MAX];
};

extern struct early early_run __attribute__((visibility("hidden"))); /* without the GOT, which is filled in after early.c has run */
