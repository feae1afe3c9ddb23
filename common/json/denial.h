/*
 * denial.h - the answer no, as a client is told it.
 *
 * A code from a closed list for programs, a sentence for people, and which key
 * of the request it is about. The sentence does not repeat the key: brig(1)
 * puts the option in its place.
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
	char             field[80]; /* "limits.memory_bytes", "ro[1]"; "": about no key */
	uint64_t         retry_after_ms; /* of busy; 0: nothing to say */
	char             text[sizeof((struct err){ 0 }.text)];
};

const char *denial_code_name(enum denial_code code);
const char *denial_code_doc(enum denial_code code);

/* All return -1. field may be NULL. */
int deny(struct denial *d, enum denial_code code, const char *field, const char *fmt, ...) printf_like(4, 5);
int deny_err(struct denial *d, enum denial_code code, const char *field, const struct err *e);

/* Of field.h: "pids: 0 is outside 1..32768" becomes the field limits.pids, when `above` is "limits". */
int deny_setting(struct denial *d, enum denial_code code, const char *above, const struct err *e);
