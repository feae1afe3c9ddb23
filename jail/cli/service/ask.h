/*
 * ask.h - one request to the running service and its reply: shared by brig ps, kill, stats and others.
 *
 * These commands never start a private brigd: it would know of no runs.
 */
#pragma once
#include "client_protocol.h"
#include "option.h"
#include "brigd_connection.h"

struct ask {
	bool json;
};
extern const struct option_row ask_options[];

/*
 * Parses the options, and checks that `wanted` words follow. Returns the index of the first word in argv. -1: everything is
 * printed, and brig exits with *status. line: the usage line.
 */
int ask_parse_options(struct ask *a, int argc, char **argv, int wanted, const char *line, const char *what, int *status);

/* Consumes the reference to request; NULL is an error. Returns a new reference to the reply, or NULL. */
must_use json_t *ask_connect_and_exchange(json_t *request, struct err *e);

/* A request is NULL where a word of it is not UTF-8. Several requests over one connection: ask_connect(), any number of ask_exchange_on_connection(), brigd_close(). */
must_use int     ask_connect(struct brigd *ret, struct err *e);
must_use json_t *ask_exchange_on_connection(struct brigd *server, json_t *request, struct err *e);

/* The integer of a row; a text of it in buf, made safe for a terminal, because a process chooses its own comm. */
json_int_t ask_reply_integer(const json_t *row, const char *key);
char      *ask_copy_plain_text(const json_t *text, char *buf, size_t len);

/* Prints a reply, or a list of rows, as JSON in ASCII, after removing the keys that only the protocol needs. */
void ask_print_json(json_t *reply);
int  ask_write_bytes(const char *bytes, size_t len, void *into); /* of json_dump_ascii(): into is a FILE */

/* A whole command: a request without arguments. Prints the reply as JSON with --json, otherwise with print(). Returns brig's exit status. */
int ask_and_print(int argc, char **argv, const char *line, const char *what, const char *op, void (*print)(const json_t *reply, FILE *out));
