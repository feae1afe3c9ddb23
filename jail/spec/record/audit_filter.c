#include "audit_filter.h"

#include "denial.h"
#include "moment.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
const struct audit_filter_row audit_filter_rows[] = {
	{ "run",     "ID",     "run_id",      "Only the run with this id" },
	{ "uid",     "N",      "peer_uid",    "Only requests of the user with this number" },
	{ "profile", "NAME",   "profile",     "Only requests for this profile" },
	{ "reason",  "REASON", "exit_reason", "Only runs with this exit reason, or refusals with this code" },
	{ "since",   "TIME",   "time",        "Only newer lines: 10m, 2h, 3d, 2026-11-20, 2026-11-20T14:00:00Z (days begin in UTC)" },
	{ 0 },
};
/* clang-format on */
_Static_assert(ARRAY_LEN(audit_filter_rows) == AUDIT_FILTERS + 1, "a filter for every row");

static bool is_denial_code(const char *text)
{
	for (int i = 0; i < DENIAL_COUNT; i++)
		if (strcmp(denial_code_name((enum denial_code)i), text) == 0)
			return true;
	return false;
}

static int err_unknown_reason(const char *value, struct err *e)
{
	char   list[400] = "";
	size_t n         = 0;

	for (int i = 0; i < EXIT_REASONS && n < sizeof list; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", exit_reason_name((enum exit_reason)i));
	return err_set(e, ERR_BAD_SPEC, "\"%.40s\" is not one of %s, and not a code of a refusal, like busy", value,
		       list);
}

static int parse_filter_value(const struct audit_row *row, const char *value, int64_t now_us, int64_t *number,
			      struct err *e)
{
	enum exit_reason ignored;
	uint64_t         n;

	switch (row->how) {
	case AUDIT_TIME:
		return moment_parse_since(value, now_us, number) == 0
			       ? 0
			       : err_set(e, ERR_BAD_SPEC,
					 "\"%.40s\" is not a time like 10m, 2h, 3d, 2026-11-20 or 2026-11-20T14:00:00Z", value);
	case AUDIT_COUNT:
		if (text_to_u64(value, &n) < 0 || n > UINT32_MAX)
			return err_set(e, ERR_BAD_SPEC, "\"%.40s\" is not the number of a user", value);
		*number = (int64_t)n;
		return 0;
	case AUDIT_REASON:
		return exit_reason_find(value, &ignored) || is_denial_code(value) ? 0 : err_unknown_reason(value, e);
	default:
		return *value && strlen(value) <= row->max
			       ? 0
			       : err_set(e, ERR_BAD_SPEC, "expected a text of 1 to %zu bytes", row->max);
	}
}

int audit_filter_set(struct audit_filter *filter, const struct audit_filter_row *row, const char *value, int64_t now_us,
		     struct err *e)
{
	size_t                  i     = (size_t)(row - audit_filter_rows);
	const struct audit_row *about = audit_row_find(row->about);

	if (filter->of[i].about)
		return err_set(e, ERR_BAD_SPEC, "given twice");
	if (parse_filter_value(about, value, now_us, &filter->of[i].number, e) < 0)
		return -1;
	filter->of[i].about = about;
	filter->of[i].text  = value;
	return 0;
}

static bool text_equals(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

static bool row_matches_entry(const struct audit_row *row, int64_t number, const char *text,
			      const struct audit_entry *entry)
{
	const void *at = (const char *)entry + row->offset;

	switch (row->how) {
	case AUDIT_TIME:
		return *(const int64_t *)at >= number;
	case AUDIT_COUNT:
		return *(const int64_t *)at == number;
	case AUDIT_REASON:
		return text_equals(exit_reason_name((enum exit_reason)entry->reason), text) ||
		       text_equals(entry->error, text);
	default:
		return text_equals(*(const char *const *)at, text);
	}
}

bool audit_filter_matches(const struct audit_filter *filter, const struct audit_entry *entry)
{
	for (size_t i = 0; i < AUDIT_FILTERS; i++)
		if (filter->of[i].about &&
		    !row_matches_entry(filter->of[i].about, filter->of[i].number, filter->of[i].text, entry))
			return false;
	return true;
}

/* By _SYSTEMD_UNIT, which the journal sets itself: any process on the host can log under the same identifier. */
void audit_filter_print_journalctl(const struct audit_filter *filter, FILE *out)
{
	fputs("journalctl _SYSTEMD_UNIT=brigd.service", out);
	for (size_t i = 0; i < AUDIT_FILTERS; i++) {
		const struct audit_row *row  = filter->of[i].about;
		const char             *text = filter->of[i].text;
		enum exit_reason        ignored;
		char                    field[AUDIT_FIELD_MAX];

		if (!row || text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
			continue; /* the text has a character that is special to a shell */
		if (row->how == AUDIT_TIME) {
			fprintf(out, " --since @%" PRId64, filter->of[i].number / 1000000);
			continue;
		}
		if (row->how == AUDIT_REASON && !exit_reason_find(text, &ignored))
			row = audit_row_find("error");
		fprintf(out, " %s=%s", audit_row_print_journal_name(row, field), text);
	}
}
