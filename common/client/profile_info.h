/*
 * profile_info.h - what brigd reports about itself and its profiles, asked once for each connection.
 */
#pragma once
#include "brigd_link.h"

/* One question. All members but known and owner must be zero. */
struct profile_question {
	/*
	 * reply: borrowed; NULL: why has the reason. Called once, perhaps before profile_info_ask() returns; may free
	 * the question.
	 */
	void          (*known)(void *owner, const json_t *reply, const struct err *why);
	void           *owner;

	struct brigd_link *link; /* NULL: not asked */
	struct question question;
	json_t         *message;
	char            key[80];
};

/* what: "hello", or "explain" with a profile's name. */
void profile_info_ask(struct profile_question *f, struct brigd_link *link, const char *what, const char *profile);
void profile_info_detach(struct profile_question *f); /* may be called after known() */

/* Names of the layers that were in force in the last run of that profile; NULL before the first. Borrowed. */
const json_t *profile_info_isolation(struct brigd_link *link, const char *profile);
void          profile_info_set_isolation(struct brigd_link *link, const char *profile, const json_t *isolation);

/* Does the service have this addition (brig-protocol(7), VERSIONS)? Not before it was asked for "hello". */
bool     profile_info_has_feature(struct brigd_link *link, const char *name);
/* A limit of an explain reply. group: "limits" or "ceilings". */
uint64_t profile_info_limit(const json_t *explained, const char *group, const char *name);
