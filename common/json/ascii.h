/*
 * ascii.h - JSON in printable ASCII, whatever its texts hold.
 *
 * A terminal obeys some characters instead of showing them. jansson always
 * escapes controls below the blank, everything that is not ASCII when asked to,
 * and DEL never: this does.
 */
#pragma once
#include <jansson.h>

/* Like json_dump_callback(), with its flags. */
int json_dump_ascii(const json_t *value, size_t flags, json_dump_callback_t put, void *into);
