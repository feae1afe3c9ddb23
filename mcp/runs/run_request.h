/*
 * run_request.h - makes brigd's request of a call: from its arguments, the settings, and what brigd reports about the
 * profile
 */
#pragma once
#include "execution.h"

/* Checks the text of a program. *e has sentences that clients of the published server look for. */
must_use int run_request_check_code(const struct settings *s, const json_t *code, struct err *e);

/*
 * The message of a run, a new reference, and the form of its answer. arguments: of execute_code, checked; explained:
 * brigd's explain reply for the profile. A limit above its maximum becomes the maximum; warnings, a list of texts,
 * names it. -1: *e names the argument.
 */
must_use int run_request_make_run(const struct settings *s, const json_t *arguments, const json_t *explained,
			     json_t *warnings, json_t **message, struct answer_form *answer_form, struct err *e);

/*
 * The same for a call in a session that has the profile. What belongs to the session was set when it was opened; what
 * a call in a session cannot have (stdin, args, allowed_imports) is refused.
 */
must_use int run_request_make_call(const struct settings *s, const json_t *arguments, const json_t *explained,
			      json_t *warnings, json_t **message, struct answer_form *answer_form, struct err *e);

/*
 * The message that opens a session, a new reference; NULL with *e. asked: profile, memory_limit and env of the call
 * that makes it.
 */
must_use json_t *run_request_make_open(const struct settings *s, const json_t *asked, const json_t *explained,
				  json_t *warnings, struct err *e);

/* The message of a check, a new reference; the code is not executed. */
json_t *run_request_make_check(const struct settings *s, const json_t *asked_imports, const json_t *explained);

/* The limits of a call that names none, in that profile and with these settings: milliseconds, bytes. */
uint64_t run_request_default_wall_ms(const struct settings *s, const json_t *explained);
uint64_t run_request_default_memory(const struct settings *s, const json_t *explained);
uint64_t run_request_output_bytes(const struct settings *s, const json_t *explained);
/* The largest timeout that a call may ask for, in milliseconds. */
uint64_t run_request_max_wall_ms(const struct settings *s, const json_t *explained);
