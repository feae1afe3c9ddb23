/*
 * sandbox_info.h - all that is known about where programs run: brigd, its profiles, the layers that are in force.
 *
 * It is asked once for each connection. Which layers are in force is known from the last run in the default profile;
 * if there was none, a program that does nothing is run to find out.
 */
#pragma once
#include "call.h"

struct sandbox_info {
	const json_t *hello;
	json_t       *profiles;  /* by name: its explain reply, or {"error": text} */
	const char   *preset;    /* the profile of calls that name none */
	json_t       *isolation; /* a list; empty when nothing can be run */
	json_t       *why;       /* a text: why nothing can be run; or NULL */
};

/* The caller of sandbox_info_gather(). Exactly one of the two functions is called, once. */
struct sandbox_info_reader {
	bool isolation; /* the layers are wanted; false: nothing is run, and they are missing */
	/* s: borrowed; NULL: why has the reason. Must answer the call. */
	void (*known)(struct call *c, const struct sandbox_info *s, const struct err *why, void *owner);
	void (*gone)(void *owner); /* the call was cancelled; NULL: nothing must be freed */
};
void sandbox_info_gather(struct call *c, const struct sandbox_info_reader *reader, void *owner);

/* Answers the call with the object that make() returns, as data; if s is NULL, with why. */
void sandbox_info_answer(struct call *c, json_t *(*make)(const struct mcp *m, const struct sandbox_info *s),
			 const struct sandbox_info *s, const struct err *why);

/* As text for a model; malloc'ed. NULL: out of memory. */
char *sandbox_info_text(const struct mcp *m, const struct sandbox_info *s);

/* The explain reply of a profile; NULL if it cannot be used: it is unknown, or its rootfs is not built. */
const json_t *sandbox_info_profile(const struct sandbox_info *s, const char *name);
/* The modules of a profile; borrowed. NULL: it cannot be used, or lists none. */
const json_t *sandbox_info_modules(const struct sandbox_info *s, const char *name);
/* The modules that the profile basic does not have; a new list. */
json_t *sandbox_info_modules_beyond_basic(const struct sandbox_info *s, const char *name);
/* Is the text in the list? */
bool sandbox_info_list_has(const json_t *list, const char *text);
/* The Python packages of its rootfs, by the names and versions of their authors; a new list, the interpreter first. */
json_t *sandbox_info_packages(const struct sandbox_info *s, const char *name);
