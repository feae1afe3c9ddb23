/*
 * moment.h - points in time as people and logs write them.
 *
 * Microseconds since 1970, UTC, from there to the end of the year 9999.
 * The parser is strict: the whole text or nothing.
 */
#pragma once
#include "defs.h"

#define MOMENT_MAX 253402300799999999ll
enum { MOMENT_TEXT = 28 };

/* "2026-11-20T14:03:22.012345Z". Outside of the range: false and an empty text. */
bool moment_print(int64_t us, char text[MOMENT_TEXT]);

/* RFC 3339: "2026-11-20T14:03:22Z", with a fraction or an offset like +01:00, or a blank instead of the T. */
must_use int moment_parse(const char *text, int64_t *us);
/* The same, or a day alone ("2026-11-20": its beginning in UTC), or how long before now_us: "90s", "10m", "2h", "3d". */
must_use int moment_parse_since(const char *text, int64_t now_us, int64_t *us);
