/*
 * result.h - what a call of a session displayed, for people: text as a notebook prints it, pictures as files
 *
 * All of it is the program's own word, and is passed on as its output is. Names of files are ours.
 */
#pragma once
#include "request.h"

/* What was displayed and the value of the last expression, as text, on standard output. -1: it cannot be written. */
must_use int result_print(const json_t *report);

/* On standard error: pictures, which are written into the directory that was named, and what the runner left out. False: one was not written. */
bool result_tell(const struct request *r, const json_t *report);

/* What became of interpreter and session, when that is not what the caller thinks. session: of a record. */
void result_tell_state(const json_t *session);
