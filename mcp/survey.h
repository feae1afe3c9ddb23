/*
 * survey.h - all that can be known about where programs run: brigd, its profiles, the layers that are in force.
 *
 * Asked once a connection. Which layers are in force is known from the last
 * run under the default profile; before the first, a program that does
 * nothing is run to find out.
 */
#pragma once
#include "call.h"

struct survey {
	const json_t *hello;
	json_t       *profiles;  /* by name: explain's words, or {"error": text} */
	const char   *preset;    /* the profile of calls that name none */
	json_t       *isolation; /* a list; empty when nothing can be run */
	json_t       *why;       /* a text: why nothing can be run; or NULL */
};

/* What a survey is for. Exactly one of the two functions is called, once. */
struct survey_reader {
	bool isolation; /* else nothing is run to find out, and the survey says nothing of it */
	/* s: borrowed; NULL: why says why nothing is known. Answers the call. */
	void (*known)(struct call *c, const struct survey *s, const struct err *why, void *owner);
	void (*gone)(void *owner); /* the call was cancelled; NULL: there is nothing to be freed */
};
void survey_seek(struct call *c, const struct survey_reader *reader, void *owner);

/* Answers the call with the object that make() returns, as data; or with why nothing is known. */
void survey_tell(struct call *c, json_t *(*make)(const struct mcp *m, const struct survey *s), const struct survey *s, const struct err *why);

/* All of it in words, for a model; the caller's to free. NULL: out of memory. */
char *survey_text(const struct mcp *m, const struct survey *s);

/* A profile's explanation, NULL when it cannot be used: unknown, or its rootfs is not built. */
const json_t *survey_profile(const struct survey *s, const char *name);
/* Its modules; borrowed, NULL: none or any. */
const json_t *survey_modules(const struct survey *s, const char *name);
/* Those that basic has not; a new list. */
json_t *survey_modules_beyond(const struct survey *s, const char *name);
/* Is the text in the list? */
bool survey_lists(const json_t *list, const char *text);
/* The Python packages of its rootfs, by the names and versions that Python people know; a new list, the interpreter first. */
json_t *survey_packages(const struct survey *s, const char *name);
