/*
 * member.h - reads a member of a JSON object that may be absent or of another type.
 */
#pragma once
#include <jansson.h>

/* Borrowed; "" if it is not a text. */
static inline const char *member_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}
