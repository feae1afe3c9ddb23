/*
 * result.h - prints what a call of a session displayed: text as a notebook does, pictures as files
 *
 * All of it comes from the program and is passed on as its output is. brig chooses the names of the files.
 */
#pragma once
#include "request.h"

/* Prints what was displayed and the value of the last expression, as text, on standard output. -1: it cannot be written. */
must_use int result_print_values(const json_t *report);

/* Writes pictures into the directory of --artifacts; names them, and what the runner left out, on stderr. False: one could not be written. */
bool result_save_pictures(const struct request *r, const json_t *report);

/* Says on stderr when the session has ended or the interpreter was lost or replaced. session: that key of the record. */
void result_print_session_state(const json_t *session);
