#include "moment.h"
#include "tap.h"

#include <inttypes.h>

#define NOW 1763647402000000ll /* 2025-11-20T14:03:22Z */

static const struct {
	const char *text;
	int64_t     us; /* -1: refused */
	const char *name;
} moments[] = {
	{ "2025-11-20T14:03:22Z",         NOW,          "seconds alone are a time" },
	{ "2025-11-20T14:03:22.5Z",       NOW + 500000, "a fraction counts" },
	{ "2025-11-20T14:03:22.0000019Z", NOW + 1,      "what is below a microsecond is dropped" },
	{ "2025-11-20T15:33:22+01:30",    NOW,          "an offset is taken off" },
	{ "2025-11-20 09:03:22-05:00",    NOW,          "a blank may stand for the T, an offset may be negative" },
	{ "1970-01-01T00:00:00Z",         0,            "the first moment" },
	{ "9999-12-31T23:59:59.999999Z",  MOMENT_MAX,   "the last moment" },
	{ "2024-02-29T00:00:00Z",         1709164800000000ll, "leap days are days" },
	{ "2025-02-29T00:00:00Z",         -1, "a leap day of another year is refused" },
	{ "2025-11-31T00:00:00Z",         -1, "the 31st of November is refused" },
	{ "2025-13-01T00:00:00Z",         -1, "a 13th month is refused" },
	{ "2025-11-20T24:00:00Z",         -1, "hour 24 is refused" },
	{ "2025-11-20T14:03:60Z",         -1, "second 60 is refused" },
	{ "2025-11-20T14:03:22",          -1, "a time without a zone is refused" },
	{ "2025-11-20T14:03:22.Z",        -1, "an empty fraction is refused" },
	{ "2025-11-20T14:03:22.0123456789Z", -1, "ten digits of a fraction are refused" },
	{ "2025-11-20T14:03:22Zx",        -1, "a left-over is refused" },
	{ "2025-11-20T14:03:22+0100",     -1, "an offset without its colon is refused" },
	{ " 2025-11-20T14:03:22Z",        -1, "a leading blank is refused" },
	{ "1970-01-01T00:00:00+01:00",    -1, "what is before 1970 is refused" },
	{ "9999-12-31T23:59:59-01:00",    -1, "what is after 9999 is refused" },
	{ "+025-11-20T14:03:22Z",         -1, "a sign is no digit" },
	{ "",                             -1, "nothing is no time" },
}, sinces[] = {
	{ "2025-11-20",           1763596800000000ll,        "a day is its beginning" },
	{ "10m",                  NOW - 600 * 1000000ll,     "ten minutes ago" },
	{ "2h",                   NOW - 7200 * 1000000ll,    "two hours ago" },
	{ "3d",                   NOW - 3 * 86400 * 1000000ll, "three days ago" },
	{ "0s",                   NOW,                       "no time ago is now" },
	{ "99999999d",            0,                         "longer ago than anything is the beginning" },
	{ "2025-11-20T14:03:22Z", NOW,                       "a time is taken as well" },
	{ "10",                   -1, "a number without its unit is refused" },
	{ "m",                    -1, "a unit without its number is refused" },
	{ "10 m",                 -1, "a blank before the unit is refused" },
	{ "-10m",                 -1, "a sign is refused" },
	{ "10ms",                 NOW - 10000ll,             "a duration is written as everywhere" },
	{ "99999999999999999999d", -1, "a number that overflows is refused" },
	{ "2025-11-20T",          -1, "half a time is refused" },
};

int main(void)
{
	char text[MOMENT_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
		int64_t us = -1;
		int     r  = moment_parse(moments[i].text, &us);

		if (!tap_ok(us == moments[i].us && (r == 0) == (moments[i].us >= 0), "%s", moments[i].name))
			printf("# %s: %" PRId64 "\n", moments[i].text, us);
	}
	for (size_t i = 0; i < ARRAY_LEN(sinces); i++) {
		int64_t us = -1;
		int     r  = moment_parse_since(sinces[i].text, NOW, &us);

		if (!tap_ok(us == sinces[i].us && (r == 0) == (sinces[i].us >= 0), "since: %s", sinces[i].name))
			printf("# %s: %" PRId64 "\n", sinces[i].text, us);
	}
	moment_print(NOW + 12345, text);
	tap_is(text, "2025-11-20T14:03:22.012345Z", "a moment is printed with its microseconds");
	tap_ok(!moment_print(-1, text) && !*text, "before 1970 nothing is printed");
	tap_ok(!moment_print(MOMENT_MAX + 1, text) && !*text, "nor after 9999");
	return tap_done();
}
