/*
 * facts.h - what brigd says about itself and its profiles, asked once a connection.
 */
#pragma once
#include "launcher.h"

/* One question. Zero it but for known and owner. */
struct fact {
	/* reply: borrowed; NULL: why says why not, in brigd's words or ours. Called once, perhaps before fact_ask() returns. */
	void          (*known)(void *owner, const json_t *reply, const struct err *why);
	void           *owner;

	struct mcp     *mcp;
	struct question question;
	json_t         *message;
	char            key[80];
};

/* what: "hello", or "explain" with a profile's name. */
void fact_ask(struct fact *f, struct mcp *m, const char *what, const char *profile);
void fact_forget(struct fact *f); /* may be called when it is known */

/* Layers that were in force in the last run of that profile: a list of names, NULL before the first. Borrowed. */
const json_t *facts_isolation(const struct mcp *m, const char *profile);
void          facts_keep_isolation(struct mcp *m, const char *profile, const json_t *isolation);

/* A limit of an explain reply: group "limits" or "ceilings". */
uint64_t fact_limit(const json_t *explained, const char *group, const char *name);
