/*
 * hints.h - what to do about an exception whose message misleads in a jail: one table, for runs and for
 * validate_code. Pure.
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct advice_about {
	bool has_stdin, in_session, has_sessions; /* of the call; has_sessions: it could have named one */
};

/* error: the record's, or one that a check foresees; hostile. "": there is nothing to add to the message. */
const char *advice_for_exception(const json_t *error, const struct advice_about *about);

/* Does the exception miss a file by a path that only a host has? */
bool advice_is_host_path_error(const json_t *error);

/*
 * The name of a module that the message misses, up to max characters. "": none, or what is there is no name. The
 * program may have written any text there.
 */
const char *advice_missing_module_name(const json_t *error, char *buf, size_t max);
