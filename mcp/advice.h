/*
 * advice.h - what to do about an exception whose message misleads in a jail. Pure.
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>

/* error: the record's, hostile. "": there is nothing to add to the message. */
const char *advice_of(const json_t *error, bool has_stdin);
