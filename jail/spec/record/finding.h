/*
 * finding.h - what one probe found, and what all of them mean together.
 *
 * Pure and without pointers: a finding is written to a pipe. A probe is
 * "missing" only when brig needs the feature on this host; an absent feature
 * that is not needed is "degraded". So the default profile can run exactly when
 * nothing is missing.
 */
#pragma once
#include "refusal.h"

enum need {
	NEED_INFO,     /* for information only */
	NEED_OPTIONAL, /* a figure or a shortcut is lost */
	NEED_SERVICE,  /* needed by root and by the profile strict; a plain user runs without it */
	NEED_DEFAULT,  /* no profile runs without it */
};

enum result { RESULT_OK, RESULT_DEGRADED, RESULT_MISSING };

struct finding {
	enum result result;
	enum refuser by;
	int         errnum;
	char        detail[160];
	char        cause[320];
	char        fix[320];
};

const char *need_name(enum need need);
const char *result_name(enum result result);
bool        need_is_binding(enum need need, bool for_all);

/* Turns RESULT_MISSING into RESULT_DEGRADED when the need does not bind here. for_all: brig runs as root or as a service. */
enum result result_degrade_by_need(enum result raw, enum need need, bool for_all);

struct verdict {
	unsigned needed, missing, degraded;
	unsigned lost; /* degraded here, but needed by root */
	size_t   first; /* index of the first missing row, when missing > 0 */
};
void verdict_add_result(struct verdict *v, size_t row, enum need need, enum result result, bool for_all);
bool verdict_can_run(const struct verdict *v);

/* "The default profile can run here." or why it cannot; first_name may be NULL when it can. */
char *verdict_print_sentence(const struct verdict *v, const char *first_name, char *buf, size_t len);
