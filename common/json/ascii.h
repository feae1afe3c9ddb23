/*
 * ascii.h - JSON of printable ASCII alone, whatever its texts hold.
 *
 * A terminal obeys some characters in the place of showing them. jansson
 * escapes all that is not ASCII when it is asked to, and the controls below
 * the blank always; DEL it never does.
 */
#pragma once
#include <jansson.h>

/* As json_dump_callback(), with its flags. */
int ascii_dump(const json_t *value, size_t flags, json_dump_callback_t put, void *into);
