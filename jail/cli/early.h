/*
 * early.h - how far a plain `brig run` came before its C library began
 *
 * Starting a C library costs more than everything that brig itself does for a run. So the program's first instruction is
 * early_start (early/early.c), which knows no library: it asks the service and passes output on. What is not exactly the plain
 * case it leaves as it is, or as far as it came, in `early_run`, and goes on to the library's own start; main() then finds a run
 * that nobody has begun, or one that is to be carried on (run_client_take_up).
 *
 * Where brig is linked dynamically nothing is done early, and `connected` stays false.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EARLY_ID_LEN = 36, EARLY_DATAGRAM_MAX = 64 * 1024, EARLY_FDS_MAX = 5 }; /* RUN_ID_LEN, PROTOCOL_MAX and DATAGRAM_FDS_MAX */
#define EARLY_WAIT_MS 60000 /* for a place, when nothing else is said */

struct early_stream {
	int      fd; /* -1: at its end */
	int      broken;
	bool     unread;
	uint64_t seen;
	unsigned little; /* stream_rest.h */
};

struct early {
	bool        connected; /* sock is, and privilege was dropped: the file was read, but nothing sent */
	bool        sent;
	bool        started;   /* run, keep and the streams are known */
	bool        masked;    /* signals are blocked that were not; mask has what was */
	int         sock;
	const char *name;      /* of the socket */
	char        run[EARLY_ID_LEN + 1];
	uint64_t    keep;
	uint64_t    mask;
	struct early_stream out, err;
	int         lost;      /* an errno: the next datagram could not be received */
	size_t      len, fds;  /* of a datagram that was received and not understood; 0: none */
	int         fd[EARLY_FDS_MAX];
	char        text[EARLY_DATAGRAM_MAX];
};

extern struct early early_run __attribute__((visibility("hidden"))); /* no table of addresses lies between: it would be filled in too late */
