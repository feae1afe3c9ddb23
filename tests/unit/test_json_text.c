/* test_json_text.c - what is written straight is what jansson would write, or reads as the same */
#include "json_text.h"
#include "tap.h"

#include <jansson.h>
#include <math.h>

static const char *string(const char *text)
{
	static char      room[256];
	struct json_text t = json_text_in(room, sizeof room);

	json_text_string(&t, text);
	json_text_finish(&t);
	return room;
}

static const char *ms(double value)
{
	static char      room[64];
	struct json_text t = json_text_in(room, sizeof room);

	json_text_ms(&t, value);
	json_text_finish(&t);
	return room;
}

static const char *integer(int64_t value)
{
	static char      room[64];
	struct json_text t = json_text_in(room, sizeof room);

	json_text_integer(&t, value);
	json_text_finish(&t);
	return room;
}

static void as_jansson(void)
{
	bool same = true;

	for (int c = 1; c < 0x80; c++) {
		char    text[] = { 'a', (char)c, 'b', 0 };
		json_t *json   = json_string(text);
		char   *dump   = json_dumps(json, JSON_ENCODE_ANY);

		same &= strcmp(dump, string(text)) == 0;
		free(dump);
		json_decref(json);
	}
	tap_ok(same, "every character of ASCII is escaped as jansson does");
}

static void whole(void)
{
	char             room[64];
	struct json_text t = json_text_in(room, sizeof room);

	json_text_raw(&t, "{");
	json_text_key(&t, "a");
	json_text_raw(&t, "[");
	for (int i = 0; i < 3; i++) {
		json_text_comma(&t);
		json_text_integer(&t, i);
	}
	json_text_raw(&t, "]");
	json_text_key(&t, "b");
	json_text_bool(&t, true);
	json_text_key(&t, "c");
	json_text_count_or_null(&t, -1);
	json_text_raw(&t, "}");
	tap_ok(json_text_finish(&t) == strlen(room), "the length is that of the text");
	tap_is(room, "{\"a\":[0,1,2],\"b\":true,\"c\":null}", "commas are where they belong");
}

static void full(void)
{
	char             room[8];
	struct json_text t = json_text_in(room, sizeof room);

	json_text_string(&t, "12345");
	tap_ok(json_text_finish(&t) == 7, "what just fits is kept");
	json_text_raw(&t, "x");
	tap_ok(json_text_finish(&t) == 0 && room[0] == 0, "what does not fit is told, and nothing is left of it");
}

int main(void)
{
	as_jansson();
	tap_is(string("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"", "UTF-8 is kept");
	tap_is(string("a\xff"), "\"a\xef\xbf\xbd\"", "what is no UTF-8 is mended");
	tap_is(string(NULL), "null", "no text is null");
	tap_is(ms(7.41249), "7.412", "milliseconds have three decimals");
	tap_is(ms(5), "5.0", "a real has a point");
	tap_is(ms(0.0004), "0.0", "what is less than half a microsecond is nothing");
	tap_is(ms(1.05), "1.05", "a zero in the middle stays");
	tap_is(ms(100.001), "100.001", "so do those that come first");
	tap_is(ms(0.1), "0.1", "zeros at the end do not");
	tap_is(ms(-1), "null", "what was not measured is null");
	tap_is(ms(NAN), "null", "so is what is no number");
	tap_is(ms(INFINITY), "null", "or none that anybody waited for");
	tap_is(integer(INT64_MIN), "-9223372036854775808", "the least integer");
	tap_is(integer(INT64_MAX), "9223372036854775807", "the largest integer");
	whole();
	full();
	return tap_done();
}
