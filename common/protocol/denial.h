/*
 * denial.h - a refusal, as a client receives it.
 *
 * It has a code from a closed list for programs, a sentence for people, and the
 * key of the request that it is about. The sentence does not repeat the key:
 * brig(1) prints its option in front instead.
 */
#pragma once
#include "err.h"

enum denial_code {
#define DENIAL(name, doc) DENIAL_##name,
#include "denial.def"
#undef DENIAL
	DENIAL_COUNT,
};

struct denial {
	enum denial_code code;
	char             field[80]; /* "limits.memory_bytes", "ro[1]"; "": not about a key */
	uint64_t         retry_after_ms; /* for DENIAL_busy; 0: not sent */
	char             reason[120]; /* why a session has ended; "": the denial is of something else */
	char             text[sizeof((struct err){ 0 }.text)];
};

const char *denial_code_name(enum denial_code code);
const char *denial_code_doc(enum denial_code code);

/* All return -1. field may be NULL. */
int deny(struct denial *d, enum denial_code code, const char *field, const char *fmt, ...) printf_like(4, 5);
int deny_err(struct denial *d, enum denial_code code, const char *field, const struct err *e);

/* True if the field is an item of this list of the request, like "ro[1]"; NULL: of any list. *i: which one. */
bool denial_parse_index(const char *field, const char *list, size_t *i);

/* For errors of fields_decode(): one in the field pids is one in limits.pids when `above` is "limits"; it may be NULL. */
int deny_setting(struct denial *d, enum denial_code code, const char *above, const struct err *e);
