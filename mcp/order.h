/*
 * order.h - what a call asks to be run: arguments, settings and the profile's own words become brigd's message.
 */
#pragma once
#include "execution.h"

/* Sentences that clients of the published server look for. 0, or -1 with *e. */
must_use int order_check_code(const struct settings *s, const json_t *code, struct err *e);

/*
 * The message of a run, and how its answer is to look. arguments: checked ones
 * of execute_code; explained: brigd's words about the profile. -1: more is
 * asked for than may be; *e names the argument. Nothing is sent.
 */
must_use int order_run(const struct settings *s, const json_t *arguments, const json_t *explained, json_t **message, struct answer_wish *wish,
		       struct err *e);

/*
 * The same of a call in a session that has the profile: what belongs to the session was said when it was opened, and what no call
 * of one can have (stdin, args, allowed_imports) is refused.
 */
must_use int order_call(const struct settings *s, const json_t *arguments, const json_t *explained, json_t **message, struct answer_wish *wish,
			struct err *e);

/* The message that opens a session. asked: profile, memory_limit and env of the call that makes it. */
must_use json_t *order_open(const struct settings *s, const json_t *asked, const json_t *explained, struct err *e);

/* The message of a check; code is not executed. */
json_t *order_check(const struct settings *s, const json_t *asked_imports, const json_t *explained);

/* The preset of a limit in that profile, as this server asks for it. */
uint64_t order_preset_wall(const struct settings *s, const json_t *explained);
uint64_t order_preset_memory(const struct settings *s, const json_t *explained);
uint64_t order_output(const struct settings *s, const json_t *explained);
/* The most that a call may ask for. */
uint64_t order_most_wall(const struct settings *s, const json_t *explained);
