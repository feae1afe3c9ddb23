/*
 * ask.h - one question to the brigd that runs here, one answer: what brig ps, kill and stats have in common.
 *
 * A private brigd would know of no runs, so none is started.
 */
#pragma once
#include "client_protocol.h"
#include "option.h"
#include "server.h"

struct ask {
	bool json;
};
extern const struct option_row ask_options[];

/* The words behind the options, as many as wanted; -1: *status says how brig ends, and all is told. line: how to write it. */
int ask_words(struct ask *a, int argc, char **argv, int wanted, const char *line, const char *what, int *status);

/* Takes the request over. The reply, a new reference, or NULL. */
must_use json_t *ask(json_t *request, struct err *e);

/* Several, over one connection: open, ask_on() as often as is wanted, server_close(). */
must_use int     ask_open(struct server *ret, struct err *e);
must_use json_t *ask_on(struct server *server, json_t *request, struct err *e);

/* A row's number; its text, fit for a terminal, in buf: comm is a name that a process chose. */
json_int_t ask_figure(const json_t *row, const char *key);
char      *ask_text(const json_t *text, char *buf, size_t len);

/* As an object without what only the protocol needs. */
void ask_print_json(json_t *reply);

/* A request without arguments; prints the reply with --json as JSON, else with print. How brig ends. */
int ask_and_print(const struct ask *a, const char *command, const char *op, void (*print)(const json_t *reply));
