#define _GNU_SOURCE
#include "moment.h"

#include "text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000ll

bool moment_print(int64_t us, char text[MOMENT_TEXT])
{
	time_t    whole = us / SECOND;
	struct tm tm;

	text[0] = 0;
	if (us < 0 || us > MOMENT_MAX || !gmtime_r(&whole, &tm))
		return false;
	strftime(text, MOMENT_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + strlen(text), MOMENT_TEXT - strlen(text), ".%06uZ", (unsigned)(us % SECOND));
	return true;
}

/* Exactly n digits; -1 when there are fewer. */
static int parse_digits(const char **p, int n)
{
	int value = 0;

	for (int i = 0; i < n; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return -1;
		value = value * 10 + (**p - '0');
	}
	return value;
}

static bool accept_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

static bool parse_date(const char **p, struct tm *tm)
{
	int year, month, day;

	if ((year = parse_digits(p, 4)) < 1970 || !accept_char(p, '-') || (month = parse_digits(p, 2)) < 1 ||
	    month > 12 ||
	    !accept_char(p, '-') || (day = parse_digits(p, 2)) < 1)
		return false;
	*tm = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
	timegm(tm); /* the 30th of February becomes the 2nd of March */
	return tm->tm_mon == month - 1 && tm->tm_mday == day;
}

static bool parse_time_of_day(const char **p, struct tm *tm)
{
	tm->tm_hour = parse_digits(p, 2);
	if (tm->tm_hour < 0 || tm->tm_hour > 23 || !accept_char(p, ':'))
		return false;
	tm->tm_min = parse_digits(p, 2);
	if (tm->tm_min < 0 || tm->tm_min > 59 || !accept_char(p, ':'))
		return false;
	tm->tm_sec = parse_digits(p, 2);
	return tm->tm_sec >= 0 && tm->tm_sec <= 59; /* the kernel's clock has no 60th second */
}

/* "", or ".5": 1 to 9 digits, of which those behind the sixth are dropped. */
static bool parse_fraction(const char **p, int64_t *us)
{
	const char *first;
	int64_t     weight = SECOND / 10;

	*us = 0;
	if (!accept_char(p, '.'))
		return true;
	for (first = *p; **p >= '0' && **p <= '9'; (*p)++, weight /= 10)
		*us += weight * (**p - '0');
	return *p > first && *p - first <= 9;
}

/* "Z" or "+01:30", in seconds. */
static bool parse_utc_offset(const char **p, int *seconds)
{
	int sign = **p == '-' ? -1 : 1, hours, minutes;

	*seconds = 0;
	if (accept_char(p, 'Z'))
		return true;
	if (!accept_char(p, '+') && !accept_char(p, '-'))
		return false;
	if ((hours = parse_digits(p, 2)) < 0 || hours > 23 || !accept_char(p, ':') ||
	    (minutes = parse_digits(p, 2)) < 0 ||
	    minutes > 59)
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

int moment_parse(const char *text, int64_t *us)
{
	struct tm tm;
	int64_t   fraction, whole;
	int       offset;

	if (!parse_date(&text, &tm) || (!accept_char(&text, 'T') && !accept_char(&text, ' ')) ||
	    !parse_time_of_day(&text, &tm) ||
	    !parse_fraction(&text, &fraction) || !parse_utc_offset(&text, &offset) || *text)
		return -1;
	whole = (timegm(&tm) - offset) * SECOND + fraction;
	if (whole < 0 || whole > MOMENT_MAX)
		return -1;
	*us = whole;
	return 0;
}

int moment_parse_since(const char *text, int64_t now_us, int64_t *us)
{
	const char *p = text;
	size_t      n = strlen(text);
	struct tm   tm;
	uint64_t    ms;

	if (parse_date(&p, &tm) && !*p) {
		*us = timegm(&tm) * SECOND;
		return 0;
	}
	if (moment_parse(text, us) == 0)
		return 0;
	/* "10m": as everywhere, but with its unit. A time before 1970 becomes 1970. */
	if (n == 0 || strchr("0123456789.", text[n - 1]) || text_to_duration_ms(text, &ms) < 0)
		return -1;
	*us = ms < (uint64_t)now_us / 1000 ? now_us - (int64_t)ms * 1000 : 0;
	return 0;
}
