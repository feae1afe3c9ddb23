/*
 * output_file.h - the whole of an output that a reply cuts, as a file of the session.
 *
 * The files are put before the call is answered, so that the file which the cut names is there. If they cannot be
 * put, the cut names none.
 */
#pragma once
#include "call.h"
#include "outcome.h"

struct output_files {
	char  *bytes; /* as session_files_start() wants it */
	size_t len;
};

/*
 * Makes the files of what the reply is going to cut, and sets the names in o. NULL: there is nothing to put; else the
 * session.
 */
struct named_session *output_file_build(struct output_files *ret, struct call *c, struct outcome *o,
				       const struct execution *x);
/* Puts them, then answers the call as without them. Takes files and o over. */
void output_file_put(struct call *c, struct named_session *s, struct output_files *files, struct outcome *o,
		     const struct answer_form *answer_form);
