#define _GNU_SOURCE
#include "audit.h"

#include "clock.h"

#include <errno.h>
#include <string.h>

int audit_open(struct audit *ret, const struct audit_plan *plan, struct err *e)
{
	struct audit a = { .file = AUDIT_FILE_NONE };

	if (plan->file && audit_file_open(&a.file, plan->file, plan->max_bytes, plan->keep, e) < 0)
		return err_wrap(e, "audit");
	journal_open(&a.journal, plan->journal, plan->text_fd);
	*ret = a;
	return 0;
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	audit_file_close(&a->file);
	journal_close(&a->journal);
}

int audit_folder_fd(const struct audit *a)
{
	return a ? a->file.folder : -1;
}

struct audit_counts audit_get_counts(const struct audit *a)
{
	return a ? (struct audit_counts){ a->entries, a->suppressed, a->journal.lost, a->file_lost }
		 : (struct audit_counts){ 0 };
}

/* The journal gets a message when lines begin to be lost, and one when they no longer are. */
static void audit_write_to_file(struct audit *a, const json_t *json)
{
	char   line[AUDIT_LINE_MAX + 1];
	size_t len;
	int    r;

	if (a->file.folder < 0)
		return;
	len = audit_json_to_line(json, line);
	r   = len ? audit_file_append_line(&a->file, line, len) : -ENOMEM;
	if (r < 0) {
		a->file_lost++;
		if (a->losing++ == 0)
			journal_log_text(&a->journal, JOURNAL_ERROR,
					 "audit: %s: %s; lines are not in the file until it can be written again "
					 "(if its folder was replaced, restart brigd)",
					 a->file.name, strerror(-r));
	} else if (a->losing) {
		journal_log_text(&a->journal, JOURNAL_NOTICE, "audit: %s: written again, without %llu lines",
				 a->file.name, (unsigned long long)a->losing);
		a->losing = 0;
	}
}

static void audit_write_to_journal(struct audit *a, const json_t *json, enum journal_priority priority)
{
	struct journal_message m;
	char                   text[AUDIT_LINE_MAX + 1], name[AUDIT_FIELD_MAX];
	size_t                 len;

	if (!journal_listens(&a->journal))
		return;
	audit_json_to_words(json, text);
	journal_message_init(&m, priority, text);
	for (const struct audit_row *row = audit_rows; row->name; row++)
		if ((len = audit_value_to_text(json_object_get(json, row->name), text)) > 0)
			journal_add_field(&m, audit_row_print_journal_name(row, name), text, len);
	journal_send_message(&a->journal, &m);
}

void audit_write(struct audit *a, const struct audit_entry *from)
{
	struct audit_entry    entry  = *from;
	/* by the server itself: no program ran */
	bool                  refusal = from->reason == EXIT_denied || from->reason == EXIT_busy;
	struct audit_throttle *throttle;
	enum journal_priority priority;
	uint64_t              before = 0;
	json_t               *json;

	if (!a)
		return;
	throttle = refusal ? &a->refusals : entry.tool ? &a->calls : NULL;
	a->entries++;
	if (entry.time_us < 0)
		entry.time_us = clock_now_us();
	/* Refusals cost the client nothing, and a client can report any calls of tools. Every run has its line. */
	if (throttle && !audit_throttle_allows(throttle, entry.peer_uid, clock_now_us(),
					       refusal ? AUDIT_REFUSALS : AUDIT_CALLS, &before)) {
		a->suppressed++;
		return;
	}
	if (before)
		entry.suppressed = (int64_t)before;
	if (a->file.folder < 0 && !journal_listens(&a->journal))
		return;
	priority = refusal || entry.is_callers         ? JOURNAL_NOTICE
		   : entry.reason == EXIT_setup_failed ? JOURNAL_WARNING
						       : JOURNAL_INFO;
	json     = audit_entry_to_json(&entry);
	audit_write_to_file(a, json);
	audit_write_to_journal(a, json, priority);
	json_decref(json);
}
