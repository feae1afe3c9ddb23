/*
 * report_line.h - one connection in the report that the server reads
 *
 * Written as things happen: the server may read it at any moment. A refusal that has a
 * row already is only counted: a program that tries a thousand times does not push
 * its other connections out of the report.
 */
#pragma once
#include "net_report.h"

#include <sys/socket.h>

struct report_line {
	struct net_report     *report;
	struct net_connection *row; /* NULL: the report is full, or another row has the same refusal */
	bool                   is_open;
};

/* False: the run is over, and the connection must reach nothing. */
must_use bool report_line_open(struct report_line *line, struct net_report *report, const char *name, uint16_t port);
void report_line_set_address(struct report_line *line, const struct sockaddr *address);
/* Counts a connection that was let through. */
void report_line_count_connection(struct report_line *line);
void report_line_mark_secret(struct report_line *line);
void report_line_add_bytes_in(struct report_line *line, uint64_t bytes);
void report_line_add_bytes_out(struct report_line *line, uint64_t bytes);
/* The first call counts; later ones change nothing. */
void report_line_close(struct report_line *line, enum net_verdict verdict, enum net_reason reason);

/* What never became a connection: a refused name or one connection too many. */
void report_refusal(struct net_report *report, const char *name, uint16_t port, enum net_reason reason);
