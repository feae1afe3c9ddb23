/* Results that are images become blocks; whatever else looks like one stays what it is. */
#include "image.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *name, *json, *want; size_t images; } rows[] = {
	{ "a-png",                      "\"data:image/png;base64,iVBORw0KGgo=\"", "\"[image/png, 8 bytes, shown below]\"", 1 },
	{ "two-in-a-list",              "[\"data:image/png;base64,iVBORw0KGgoA\",\"data:image/jpeg;base64,/9j/\"]", "[\"[image/png, 9 bytes, shown below]\",\"[image/jpeg, 3 bytes, shown below]\"]", 2 },
	{ "a-gif",                      "\"data:image/gif;base64,R0lGODlh\"", "\"[image/gif, 6 bytes, shown below]\"", 1 },
	{ "a-webp",                     "\"data:image/webp;base64,UklGRhoAAABXRUJQ\"", "\"[image/webp, 12 bytes, shown below]\"", 1 },
	{ "no-png-whatever-it-says",    "\"data:image/png;base64,AAAA\"", "\"data:image/png;base64,AAAA\"", 0 },
	{ "a-jpeg-that-says-png",       "\"data:image/png;base64,/9j/\"", "\"data:image/png;base64,/9j/\"", 0 },
	{ "a-riff-that-is-no-webp",     "\"data:image/webp;base64,UklGRhoAAABXQVZF\"", "\"data:image/webp;base64,UklGRhoAAABXQVZF\"", 0 },
	{ "a-webp-that-is-too-short",   "\"data:image/webp;base64,UklGRhoA\"", "\"data:image/webp;base64,UklGRhoA\"", 0 },
	{ "a-list-with-something-else", "[\"data:image/png;base64,iVBORw0KGgoA\",1]", "[\"[image/png, 9 bytes, not shown: make it the result itself]\",1]", 0 },
	{ "five-are-too-many",          "[\"data:image/png;base64,iVBORw0KGgoA\",\"data:image/png;base64,iVBORw0KGgoA\",\"data:image/png;base64,iVBORw0KGgoA\",\"data:image/png;base64,iVBORw0KGgoA\",\"data:image/png;base64,iVBORw0KGgoA\"]",
	  "[\"[image/png, 9 bytes, not shown: make it the result itself]\",\"[image/png, 9 bytes, not shown: make it the result itself]\",\"[image/png, 9 bytes, not shown: make it the result itself]\",\"[image/png, 9 bytes, not shown: make it the result itself]\",\"[image/png, 9 bytes, not shown: make it the result itself]\"]", 0 },
	{ "one-inside-is-named",        "{\"a\":[{\"b\":\"data:image/png;base64,iVBORw0KGgoA\"}],\"c\":2}", "{\"a\":[{\"b\":\"[image/png, 9 bytes, not shown: make it the result itself]\"}],\"c\":2}", 0 },
	{ "an-empty-list",              "[]", "[]", 0 },
	{ "svg-is-a-program",           "\"data:image/svg+xml;base64,AAAA\"", "\"data:image/svg+xml;base64,AAAA\"", 0 },
	{ "bad-base64-is-a-text",       "\"data:image/png;base64,AA*A\"", "\"data:image/png;base64,AA*A\"", 0 },
	{ "cut-base64-is-a-text",       "\"data:image/png;base64,AAA\"", "\"data:image/png;base64,AAA\"", 0 },
	{ "padding-inside-is-a-text",   "\"data:image/png;base64,A=AA\"", "\"data:image/png;base64,A=AA\"", 0 },
	{ "nothing-in-it-is-a-text",    "\"data:image/png;base64,\"", "\"data:image/png;base64,\"", 0 },
	{ "NUL-in-it-is-a-text",        "\"data:image/png;base64,AAAA\\u0000\"", "\"data:image/png;base64,AAAA\\u0000\"", 0 },
	{ "a-number",                   "5", "5", 0 },
	{ "an-object",                  "{\"data:image/png;base64,AAAA\":1}", "{\"data:image/png;base64,AAAA\":1}", 0 },
};
/* clang-format on */

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct images g;
		json_t       *value = json_loads(rows[i].json, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL), *left;
		char         *text;

		images_init(&g, NULL, "6f0c0d5e");
		left = image_move_to_gallery(value, &g);
		text = json_dumps(left, JSON_COMPACT | JSON_ENCODE_ANY);

		tap_is(text, rows[i].want, rows[i].name);
		tap_ok(json_array_size(g.content) == rows[i].images, "%s: %zu images", rows[i].name, rows[i].images);
		free(text);
		json_decref(left);
		images_done(&g);
		json_decref(value);
	}
	return tap_done();
}
