/* report.h - what brig says of a run: the record, one story on stderr, and its own exit status */
#pragma once
#include "session.h"

/* Prints, and returns what brig exits with. */
int report_session(const struct session *s);

/* No request was sent: why. */
int report_failure(const struct request *r, const struct err *why);
