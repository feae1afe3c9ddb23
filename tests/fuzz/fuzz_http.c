/* fuzz_http.c - a request line, headers and a body: who is let in is who the lists name, what passes says the same in both, refusals say why */
#include "fuzz.h"
#include "http_admission.h"
#include "http_rules.h"

#include <strings.h>

/* The line up to its end, which is passed over; NULL: no more. The caller frees. */
static char *take_line(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
	size_t         len = end ? (size_t)(end - *data) : *size;
	char          *line;

	if (!*size)
		return NULL;
	line = strndup((const char *)*data, len);
	must(line);
	line[strcspn(line, "\r")] = 0;
	*data += len + (end != NULL);
	*size -= len + (end != NULL);
	return line;
}

static void take_head(struct http_head *h, const uint8_t **data, size_t *size)
{
	char *line;

	while ((line = take_line(data, size)) && *line) {
		char *value = strchr(line, ':');

		if (value)
			*value++ = 0;
		head_store_header(h, line, value);
		free(line);
	}
	free(line);
}

static void must_be_plain(const char *text)
{
	must_about(text, *text && text_is_utf8(text, strlen(text)) && !text_has_control(text));
}

static void must_be_a_refusal(const struct refusal *r)
{
	must(r->status >= 400 && r->status < 500 && r->code && *r->code && *r->text);
	must((r->status == 405) == (r->allow != NULL));
	must_be_plain(r->text);
}

/* Said once more, in other words than the code's. */
static void must_be_let_in(const struct http_head *h, const char *method, const char *wanted, const char *path)
{
	static const char *const fine[] = { "localhost", "127.", "[::1]", "[0", "[127.", "ok.example" };
	bool                     named  = false;

	must(!*h->fault && h->host);
	for (size_t i = 0; i < ARRAY_LEN(fine); i++)
		named |= !strncasecmp(h->host, fine[i], strlen(fine[i]));
	must_about(h->host, named);
	must_about(h->origin, !h->origin || !strncasecmp(h->origin, "http://", 7) || !strncasecmp(h->origin, "https://", 8));
	must(!strcmp(method, wanted) && !strcmp(path, "/mcp"));
	must(h->authorization && strstr(h->authorization, "0123456789abcdef0123456789abcdef"));
}

static void decide(const struct http_head *h, const char *method, const char *path)
{
	static struct admission a = { .body_max = 1000 };
	static bool             ready;
	struct refusal          refusal = { 0 };
	struct err              e;

	if (!ready) {
		must(token_parse(&a.token, "0123456789abcdef0123456789abcdef", &e) == 0);
		a.allow_host   = json_pack("[s]", "ok.example");
		a.allow_origin = json_pack("[s]", "https://app.example");
		ready          = true;
	}
	switch (admission_choose_route(&a, h, method, path, &refusal)) {
	case ROUTE_REFUSED:
		must_be_a_refusal(&refusal);
		break;
	case ROUTE_MCP:
		must_be_let_in(h, method, "POST", path);
		break;
	case ROUTE_END:
		must_be_let_in(h, method, "DELETE", path);
		break;
	case ROUTE_HEALTH:
	case ROUTE_METRICS:
		must(!strcmp(method, "GET") || !strcmp(method, "HEAD"));
		break;
	case ROUTE_PREFLIGHT:
		must_about(h->origin, !strcasecmp(h->origin, "https://app.example"));
		break;
	}
}

static void must_be_an_error(const struct rpc_error *e)
{
	must(e->code == RPC_HEADER_MISMATCH || e->code == RPC_UNSUPPORTED_VERSION || e->code == RPC_INVALID_PARAMS || e->code == RPC_INVALID_REQUEST);
	must_be_plain(e->text);
	json_decref(e->data);
}

static void must_decode_well(const char *value)
{
	char *text = value ? rules_decode_header_value(value) : NULL;

	if (text)
		must_about(value, !strcmp(text, value) || (begins_with(value, "=?base64?") && text_is_utf8(text, strlen(text))));
	free(text);
}

static void check(const struct http_head *h, const struct rpc_message *m)
{
	enum revision    legacy = REVISION_COUNT;
	struct rpc_error e      = { 0 };

	switch (rules_decide_era(h, m, &legacy, &e)) {
	case HTTP_ERA_REFUSED:
		must_be_an_error(&e);
		break;
	case HTTP_ERA_LEGACY:
		must(legacy < REVISION_COUNT && !revision_is_modern(legacy));
		break;
	case HTTP_ERA_MODERN:
		if (rules_check_headers(h, m, &e) < 0)
			must_be_an_error(&e);
		else
			must(!strcmp(h->mcp_method, m->method));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_head   h = { 0 };
	struct rpc_message m;
	struct rpc_error   e;
	char              *method = take_line(&data, &size), *path = method ? strchr(method, ' ') : NULL;

	if (path)
		*path++ = 0;
	take_head(&h, &data, &size);
	if (method)
		decide(&h, method, path ? path : "/mcp");
	must_decode_well(h.mcp_name);
	for (size_t i = 0; i < h.n_params; i++)
		must_decode_well(h.param[i].value);
	if (size && rpc_parse(&m, data, size, &e) == 0)
		check(&h, &m);
	if (size)
		rpc_message_done(&m);
	head_done(&h);
	free(method);
	return 0;
}
