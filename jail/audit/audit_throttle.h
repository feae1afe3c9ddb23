/*
 * audit_throttle.h - limits the refusals of one uid that the audit writes each minute.
 *
 * A refusal costs the client nothing. Without a limit a client could cause so many
 * that rotation removes everything else from the file and the journal. Pure: the
 * caller passes the time.
 */
#pragma once
#include "defs.h"

enum { AUDIT_REFUSALS = 120, AUDIT_UIDS = 64 };

struct audit_throttle {
	struct audit_refuser {
		int64_t  uid;
		int64_t  began_us;
		unsigned n;          /* written since began_us */
		uint64_t suppressed; /* not written since the last one that was */
	} of[AUDIT_UIDS];
	size_t len;
};

/* True: write this refusal of uid. *suppressed is then the number that was not written since the last one. */
bool audit_throttle_take(struct audit_throttle *t, int64_t uid, int64_t now_us, uint64_t *suppressed);
