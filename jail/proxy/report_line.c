#define _GNU_SOURCE
#include "report_line.h"

#include "clock.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* The server reads n without a lock, so the row is complete before n counts it. */
static struct net_connection *add_report_row(struct net_report *report, const char *name, uint16_t port)
{
	struct net_connection *row = &report->connection[report->n];

	if (report->n >= NET_REPORT_MAX) {
		report->left_out++;
		return NULL;
	}
	*row = (struct net_connection){ .port = port, .verdict = NET_VERDICT_OPEN,
					.began_ms = clock_ms(CLOCK_MONOTONIC) };
	(void)snprintf(row->name, sizeof row->name, "%s", name);
	__atomic_store_n(&report->n, report->n + 1, __ATOMIC_RELEASE);
	return row;
}

bool report_line_open(struct report_line *line, struct net_report *report, const char *name, uint16_t port)
{
	*line = (struct report_line){ .report = report, .row = add_report_row(report, name, port), .is_open = true };
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* net_report.h: the row must be visible before "over" is read */
	return !__atomic_load_n(&report->over, __ATOMIC_RELAXED);
}

void report_line_set_address(struct report_line *line, const struct sockaddr *address)
{
	if (!line->row)
		return;
	line->row->family = (uint8_t)address->sa_family;
	if (address->sa_family == AF_INET)
		memcpy(line->row->address, &((const struct sockaddr_in *)address)->sin_addr, 4);
	else
		memcpy(line->row->address, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
}

void report_line_count_connection(struct report_line *line)
{
	line->report->connections++;
}

void report_line_mark_secret(struct report_line *line)
{
	if (line->row)
		line->row->has_secret = true;
}

void report_line_add_bytes_in(struct report_line *line, uint64_t bytes)
{
	line->report->bytes_in += bytes;
	if (line->row)
		line->row->bytes_in += bytes;
}

void report_line_add_bytes_out(struct report_line *line, uint64_t bytes)
{
	line->report->bytes_out += bytes;
	if (line->row)
		line->row->bytes_out += bytes;
}

/* Whether a row has this refusal already; its again_ms is set, so that a later call of a session has the refusal, too.
 */
static bool note_repeated_refusal(struct net_report *report, const char *name, uint16_t port, enum net_reason reason)
{
	for (uint32_t i = 0; i < report->n; i++) {
		struct net_connection *row = &report->connection[i];

		if (row->port == port && row->verdict == NET_VERDICT_REFUSED && row->reason == reason &&
		    strcmp(row->name, name) == 0) {
			row->again_ms = clock_ms(CLOCK_MONOTONIC);
			return true;
		}
	}
	return false;
}

void report_line_close(struct report_line *line, enum net_verdict verdict, enum net_reason reason)
{
	struct net_report     *report = line->report;
	struct net_connection *row    = line->row;

	if (!line->is_open)
		return;
	line->is_open = false;
	report->refused += verdict == NET_VERDICT_REFUSED;
	report->failed += verdict == NET_VERDICT_FAILED;
	/* Only the last row can be removed. */
	if (verdict == NET_VERDICT_REFUSED && row && row == &report->connection[report->n - 1] &&
	    note_repeated_refusal(report, row->name, row->port, reason)) {
		report->n--;
		line->row = row = NULL;
	}
	if (!row)
		return;
	row->reason   = reason;
	row->ended_ms = clock_ms(CLOCK_MONOTONIC);
	row->verdict  = verdict;
}

void report_refusal(struct net_report *report, const char *name, uint16_t port, enum net_reason reason)
{
	struct report_line line;

	if (note_repeated_refusal(report, name, port, reason)) {
		report->refused++;
		return;
	}
	(void)!report_line_open(&line, report, name, port);
	report_line_close(&line, NET_VERDICT_REFUSED, reason);
}
