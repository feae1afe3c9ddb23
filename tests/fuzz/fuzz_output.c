/* fuzz_output.c - which bounds, then any bytes as what a program has written: what clients get of it is text, bounded, and says what it left out */
#define _GNU_SOURCE
#include "clean.h"
#include "excerpt.h"
#include "fuzz.h"
#include "reply.h"

static void must_be_clean(const char *text, size_t len, bool keep)
{
	must_about(text, text_is_utf8(text, len) && !memchr(text, 0, len));
	for (size_t i = 0; i < len && !keep; i++)
		must_about(text, (unsigned char)text[i] >= 0x20 || strchr("\n\t\r", text[i]));
}

static void must_fit(const char *text, size_t len, size_t max)
{
	size_t n     = clean_fit_escaped(text, len, max);
	json_t *one  = json_stringn(text, n), *two;
	char   *once = json_dumps(one, JSON_ENCODE_ANY | JSON_COMPACT), *twice;

	must(one && once);
	two   = json_string(once);
	twice = json_dumps(two, JSON_ENCODE_ANY | JSON_COMPACT);
	must(strlen(twice) <= max + 8); /* and the quotes around both */
	free(once);
	free(twice);
	json_decref(one);
	json_decref(two);
}

static struct outcome_stream stream_of(const uint8_t *data, size_t size, bool keep, bool is_cut)
{
	struct outcome_stream s = { .bytes = size, .is_cut = is_cut };

	s.text = clean_text(data, clean_whole_characters((const char *)data, size), keep, &s.len);
	must_be_clean(s.text, s.len, keep);
	if (is_cut) {
		s.tail  = clean_text(data + size / 2, size - size / 2, keep, &s.tail_len);
		s.bytes = 1ull << 40;
	}
	return s;
}

static void must_reply(struct outcome *o, size_t max)
{
	json_t *object = reply_json(o, &(struct answer_form){ .echo = true, .detail = max & 1 });
	char   *text   = reply_text(o, max);

	must(strlen(text) <= max);
	must_be_clean(text, strlen(text), true);
	must(json_is_string(json_object_get(object, "stdout")));
	free(text);
	json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome o = { .displays = json_array(), .record = json_object(), .seconds = -1, .exit_reason = "exited" };
	bool           keep, is_cut;
	size_t         max, half;

	images_init(&o.gallery, NULL, "");
	if (size < 2) {
		outcome_done(&o);
		return 0;
	}
	keep   = data[0] & 1;
	is_cut = data[0] & 2;
	max    = 1024 + (size_t)data[1] * 16;
	half   = (size - 2) / 2;
	o.out  = stream_of(data + 2, half, keep, is_cut);
	o.err  = stream_of(data + 2 + half, size - 2 - half, keep, false);
	snprintf(o.error, sizeof o.error, "%.500s", o.out.text);
	json_array_append_new(o.displays, json_stringn(o.out.text, o.out.len));
	json_array_append_new(o.displays, json_stringn(o.err.text, o.err.len));
	must_fit(o.out.text, o.out.len, max);
	must_reply(&o, max);
	outcome_done(&o);
	return 0;
}
