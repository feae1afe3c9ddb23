/* fuzz_numbers.c - any text as a number, a size, a duration, a name, UTF-8: against other ways to tell, and back to text */
#include "fuzz.h"
#include "limits.h"

#include <errno.h>
#include <inttypes.h>

/* Untouched on failure, as text.h says. */
#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

static void check_u64(const char *text)
{
	uint64_t value = UNTOUCHED, whole;
	bool     digits = *text && strspn(text, "0123456789") == strlen(text);

	errno = 0;
	whole = strtoull(text, NULL, 10);
	if (text_to_u64(text, &value) == 0)
		must_about(text, digits && errno == 0 && value == whole);
	else
		must_about(text, value == UNTOUCHED && (!digits || errno == ERANGE));
}

/* The shortest exact form means the same number. */
static void check_size(const char *text)
{
	uint64_t value = UNTOUCHED, again = 0;
	char     printed[32];

	if (text_to_size(text, &value) < 0) {
		must_about(text, value == UNTOUCHED);
		return;
	}
	text_from_size(value, printed, sizeof printed);
	must_about(text, text_to_size(printed, &again) == 0 && again == value);
	must_about(text, strlen(printed) <= 20);
}

static void check_milli(const char *text)
{
	uint64_t value = UNTOUCHED, again = 0;
	char     printed[32];

	if (text_to_milli(text, &value) < 0) {
		must_about(text, value == UNTOUCHED);
		return;
	}
	text_from_milli(value, printed, sizeof printed);
	must_about(text, text_to_milli(printed, &again) == 0 && again == value);
}

static void check_duration(const char *text)
{
	uint64_t ms = UNTOUCHED, milli;

	if (text_to_duration_ms(text, &ms) < 0)
		must_about(text, ms == UNTOUCHED);
	else if (text_to_milli(text, &milli) == 0)
		must_about(text, ms == milli); /* seconds unless said */
}

/* Every limit as an option would set it: in its bounds, and printed so that it can be typed again. */
static void check_limits(const char *text)
{
	for (const struct field *f = limits_fields; f->name; f++) {
		struct limits l, again;
		struct err    e = { 0 };
		char          typed[32];

		if (field_from_text(f, text, &l, &e) < 0) {
			must_say_why(&e);
			continue;
		}
		must_about(text, limits_value(&l, f) >= f->min && limits_value(&l, f) <= f->max);
		field_print_text(f, limits_value(&l, f), typed, sizeof typed);
		must_about(typed, field_from_text(f, typed, &again, &e) == 0 && limits_value(&again, f) == limits_value(&l, f));
	}
}

/* jansson has its own idea of UTF-8; what we call text must fit into a record. */
static void check_utf8(const uint8_t *data, size_t size)
{
	json_t *string = json_stringn((const char *)data, size);
	size_t  len    = 0;
	char   *made   = text_as_utf8(data, size, &len);

	must(made && text_is_utf8(data, size) == (string != NULL));
	must(text_is_utf8(made, len) && (!string || (len == size && memcmp(made, data, size) == 0)));
	json_decref(string);
	free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_utf8(data, size);
	char *text = take_text(&data, &size);
	check_u64(text);
	check_size(text);
	check_milli(text);
	check_duration(text);
	check_limits(text);
	if (text_is_name(text))
		must_about(text, strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(text) && !strstr(text, "..") && *text != '.');
	free(text);
	return 0;
}
