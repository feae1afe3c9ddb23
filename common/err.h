/*
 * err.h - what went wrong, reported once.
 *
 * An err is a plain value: no heap, no pointers. It can live on any stack,
 * be written through a pipe by a half-built jail, and be compared in a test.
 * The function that notices the failure names what it was doing; callers that
 * know more prefix it with err_wrap(). Only main() and the loops print.
 */
#pragma once
#include "defs.h"

enum err_kind {
#define ERR(id, rpc, text) ERR_##id,
#include "err.def"
#undef ERR
};

struct err {
	enum err_kind kind;
	int           errnum; /* an errno if the failure has one, else 0 */
	unsigned      field_len; /* of the field's name, with which text begins; 0: it is not about a field */
	char          text[500];
};

/* All three return -1, so a failing function ends in one line. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) printf_like(3, 4);
int err_sys(struct err *e, const char *fmt, ...) printf_like(2, 3); /* kind SETUP, keeps errno */
int err_wrap(struct err *e, const char *fmt, ...) printf_like(2, 3);
int err_in_field(struct err *e, const char *field); /* err_wrap() by the name of a field; notes its length */

const char *err_kind_name(enum err_kind kind);
int         err_kind_rpc_code(enum err_kind kind);
