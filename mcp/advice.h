/*
 * advice.h - what to do about an exception that says too little by itself in a jail. Pure.
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>

/* error: of a record; hostile. "": nothing that the exception does not say. */
const char *advice_of(const json_t *error, bool has_stdin);
