/*
 * profile_info.h - what brigd says about itself and its profiles, asked once for each connection.
 */
#pragma once
#include "brigd_link.h"
#include "mcp.h"

/* One question. All members but known and owner must be zero. */
struct fact {
	/*
	 * reply: borrowed; NULL: why says why there is none. Called once, perhaps before fact_ask() returns; may free
	 * the fact.
	 */
	void          (*known)(void *owner, const json_t *reply, const struct err *why);
	void           *owner;

	struct mcp     *mcp;
	struct question question;
	json_t         *message;
	char            key[80];
};

/* what: "hello", or "explain" with a profile's name. */
void fact_ask(struct fact *f, struct mcp *m, const char *what, const char *profile);
void fact_forget(struct fact *f); /* may be called after known() */

/* Names of the layers that were in force in the last run of that profile; NULL before the first. Borrowed. */
const json_t *facts_isolation(const struct mcp *m, const char *profile);
void          facts_keep_isolation(struct mcp *m, const char *profile, const json_t *isolation);

/* A limit of an explain reply. group: "limits" or "ceilings". */
uint64_t fact_limit(const json_t *explained, const char *group, const char *name);
