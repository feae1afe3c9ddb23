/* Bytes become a text and the same bytes again; every other spelling is refused. */
#include "base64.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *text, *bytes; size_t len; } rows[] = {
	{ "",         "",        0 },
	{ "AA==",     "\0",      1 },
	{ "//79",     "\377\376\375", 3 },
	{ "SGVsbG8=", "Hello",   5 },
	{ "SGVsbG8h", "Hello!",  6 },
};
static const char *const damaged[] = { "A", "AA", "AAA", "AA=", "=AAA", "A===", "AB==", "AAB=", "AA==AA==", "AA= ", "AA\nA", "AA_A", "AA-A", "AA*A" };
/* clang-format on */

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len  = 99;
		char  *text = base64_encode(rows[i].bytes, rows[i].len), *bytes = base64_decode(rows[i].text, strlen(rows[i].text), &len);

		tap_is(text, rows[i].text, "bytes become their text");
		tap_ok(bytes && len == rows[i].len && memcmp(bytes, rows[i].bytes, len + 1) == 0, "\"%s\" becomes its bytes", rows[i].text);
		free(text);
		free(bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
		size_t len;

		tap_ok(!base64_decode(damaged[i], strlen(damaged[i]), &len), "\"%s\" is damaged", damaged[i]);
	}
	return tap_done();
}
