/*
 * audit_filter.h - which entries of the audit to print.
 *
 * One row per option of brig audit; each option compares one row of the entry.
 * An entry is printed when it passes all options that are given.
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
		const struct audit_row *about; /* NULL: the option is not given */
		int64_t                 number;
		const char             *text; /* borrowed */
	} of[AUDIT_FILTERS];                  /* in the order of audit_filter_rows; initialise with zeros */
};

/* Parses the argument of an option. The error does not name the option. */
must_use int audit_filter_set(struct audit_filter *filter, const struct audit_filter_row *row, const char *value, int64_t now_us,
			      struct err *e);
bool         audit_filter_matches(const struct audit_filter *filter, const struct audit_entry *entry);

/* The journalctl command that prints the same entries. Values with characters that are special to a shell are left out. */
void audit_filter_print_journalctl(const struct audit_filter *filter, FILE *out);
