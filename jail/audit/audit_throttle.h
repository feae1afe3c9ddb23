/*
 * audit_throttle.h - limits what the audit writes of one uid each minute: refusals, and calls of tools.
 *
 * They cost the client nothing. Without a limit a client could cause so many
 * that rotation removes everything else from the file and the journal. Pure: the
 * caller passes the time.
 */
#pragma once
#include "defs.h"

enum {
	AUDIT_REFUSALS = 120,  /* a minute */
	AUDIT_CALLS    = 1000, /* the same, of tools: as many as of one run */
	AUDIT_UIDS     = 64
};

struct audit_throttle {
	struct audit_refuser {
		int64_t  uid;
		int64_t  began_us;
		unsigned n;          /* written since began_us */
		uint64_t suppressed; /* not written since the last one that was */
	} of[AUDIT_UIDS];
	size_t len;
};

/*
 * True: write this line of uid, which has at most `most` a minute. *suppressed is then how many were not written since
 * the last one that was.
 */
bool audit_throttle_allows(struct audit_throttle *t, int64_t uid, int64_t now_us, unsigned most, uint64_t *suppressed);
