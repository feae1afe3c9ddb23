/* JSON as text: reals as short as they can be, and everything else as jansson writes it. */
#include "json_text.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *name, *json, *want; } rows[] = {
	{ "a-tenth-is-short",             "[0.1]", "[0.1]" },
	{ "a-sum-of-tenths-keeps-all-digits", "[0.30000000000000004]", "[0.30000000000000004]" },
	{ "a-real-stays-one",             "[3.0, -0.0, 100000.0]", "[3.0,-0.0,100000.0]" },
	{ "large-and-small-ones",         "[1e22, 1e-7, 1.7976931348623157e308, 5e-324]", "[1e+22,1e-07,1.7976931348623157e+308,4.94065645841247e-324]" },
	{ "integers",                     "[0, -5, 9223372036854775807]", "[0,-5,9223372036854775807]" },
	{ "words",                        "[true, false, null]", "[true,false,null]" },
	{ "texts-and-keys-are-escaped",   "{\"a\\\"\\n\": \"\\u0001\\u20ac/\"}", "{\"a\\\"\\n\":\"\\u0001\xe2\x82\xac/\"}" },
	{ "empty-ones",                   "[[], {}]", "[[],{}]" },
	{ "order-is-kept",                "{\"z\":1,\"a\":{\"y\":[1,2]}}", "{\"z\":1,\"a\":{\"y\":[1,2]}}" },
};
/* clang-format on */

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *value = json_loads(rows[i].json, JSON_ALLOW_NUL, NULL), *back;
		char   *text  = json_text(value);

		tap_is(text, rows[i].want, rows[i].name);
		back = json_loads(text, JSON_ALLOW_NUL, NULL);
		tap_ok(json_equal(value, back), "%s: and back", rows[i].name);
		json_decref(back);
		json_decref(value);
		free(text);
	}
	return tap_done();
}
