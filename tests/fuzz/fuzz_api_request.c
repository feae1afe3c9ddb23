/*
 * fuzz_api_request.c - the body of a request to brig-api: a program within its bounds, or a reason
 *
 * The first byte says which interface it is for, and whether it is a file of tokens instead.
 */
#include "api_token.h"
#include "file_stream.h"
#include "fuzz.h"
#include "program.h"
#include "text.h"
#include "wire.h"

static void must_be_a_program(const struct program *p)
{
	const char *path;
	json_t     *value;

	must(p->language && (!p->code || strlen(p->code) == p->code_len));
	must(p->wall_ms <= 1000000000000000 && p->memory_bytes <= 1000000000000000);
	json_object_foreach(p->files, path, value)
		must_about(path, !file_name_find_fault(path, strlen(path)) && strcmp(path, "main.py") != 0);
	for (size_t i = 0; i < json_array_size(p->fetch); i++) {
		path = json_string_value(json_array_get(p->fetch, i));
		must_about(path, !file_name_find_fault(path, strlen(path)));
	}
}

static void read_body(enum interface by, const char *bytes, size_t len)
{
	struct err     e    = { 0 };
	scoped_json   *body = wire_parse_with_nul(bytes, len, 64 * KIB, &e);
	scoped_program p    = { 0 };
	size_t         n;

	if (!body) {
		must(*e.text);
		return;
	}
	if (program_read(&p, by, body, &e) < 0) {
		must(*e.text);
		return;
	}
	must_be_a_program(&p);
	free(program_make_transfer(&p, false, &n));
}

static void read_tokens(const char *bytes, size_t len)
{
	static struct api_tokens tokens;
	char                    *text = strndup(bytes, len);
	struct err               e    = { 0 };

	must(text);
	if (api_tokens_parse(&tokens, text, &e) < 0)
		must(*e.text);
	else
		must(tokens.n > 0 && tokens.n <= API_TOKENS_MAX && tokens.wanted);
	for (size_t i = 0; i < tokens.n; i++)
		must(*tokens.row[i].name && text_is_visible_ascii(tokens.row[i].name) && tokens.row[i].interfaces);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % (INTERFACE_COUNT + 1) == INTERFACE_COUNT)
		read_tokens((const char *)data + 1, size - 1);
	else
		read_body((enum interface)(data[0] % (INTERFACE_COUNT + 1)), (const char *)data + 1, size - 1);
	return 0;
}
