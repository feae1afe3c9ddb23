/*
 * audit_filter.h - which entries of the audit to print.
 *
 * One row per option of brig audit, and each is about one row of the entry. All
 * that are given must hold.
 */
#pragma once
#include "audit_entry.h"

struct audit_filter_row {
	const char *option, *arg;
	const char *about; /* a name of audit_rows */
	const char *doc;
};
extern const struct audit_filter_row audit_filter_rows[]; /* ends with a NULL option */

enum { AUDIT_FILTERS = 5 };

struct audit_filter {
	struct {
		const struct audit_row *about; /* NULL: not asked for */
		int64_t                 number;
		const char             *text; /* borrowed */
	} of[AUDIT_FILTERS];                  /* by the rows' order; begin with zeros */
};

/* What stands behind an option, in its own words: the error does not name the option. */
must_use int audit_filter_set(struct audit_filter *filter, const struct audit_filter_row *row, const char *value, int64_t now_us,
			      struct err *e);
bool         audit_filter_holds(const struct audit_filter *filter, const struct audit_entry *entry);

/* The command that asks the journal for the same. Values that a shell would understand are left out. */
void audit_filter_print_journalctl(const struct audit_filter *filter, FILE *out);
