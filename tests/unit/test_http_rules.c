/* test_http_rules.c - what headers must say about the body, and in which era a message is */
#include "http_rules.h"
#include "tap.h"

static void decodes(const char *value, const char *want)
{
	char *text = rules_decode_header_value(value);

	tap_ok((!text && !want) || (text && want && !strcmp(text, want)), "\"%s\" is %s", value, want ? want : "damaged");
	free(text);
}

static void test_base64(void)
{
	decodes("plain", "plain");
	decodes("", "");
	decodes("=?base64?SGVsbG8=?=", "Hello");
	decodes("=?base64?SGVsbG8h?=", "Hello!");
	decodes("=?base64?SGk=?=", "Hi");
	decodes("=?base64?SA==?=", "H");
	decodes("=?base64?" "?=", "");
	decodes("=?base64?SGVsbG8=", "=?base64?SGVsbG8=");
	decodes("SGVsbG8=?=", "SGVsbG8=?=");
	decodes("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?=");
	decodes("=?base64?=", "=?base64?=");
	decodes("=?base64?SGVsbG8?=", NULL);
	decodes("=?base64?SGVsbG9=?=", NULL);
	decodes("=?base64?SB==?=", NULL);
	decodes("=?base64?SGVs bG8=?=", NULL);
	decodes("=?base64?SGVsbG8_?=", NULL);
	decodes("=?base64?=AAA?=", NULL);
	decodes("=?base64?A=A=?=", NULL);
	decodes("=?base64?SA==SA==?=", NULL);
	decodes("=?base64?gIA=?=", NULL);
	decodes("=?base64?AAAA?=", NULL);
}

#define MODERN_META "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}"

static const struct {
	const char   *name, *header, *params;
	enum http_era era;
	int           code; /* of a refusal; else the revision of a legacy one */
} eras[] = {
	/* clang-format off */
	{ "no header and no claim is the revision that has no header",  NULL,         "{}",                 HTTP_ERA_LEGACY,  REVISION_2025_03_26 },
	{ "a legacy header says which revision",                        "2025-11-25", "{}",                 HTTP_ERA_LEGACY,  REVISION_2025_11_25 },
	{ "the oldest revision is one, too",                            "2024-11-05", "{}",                 HTTP_ERA_LEGACY,  REVISION_2024_11_05 },
	{ "an unknown header is refused",                               "1999-01-01", "{}",                 HTTP_ERA_REFUSED, RPC_UNSUPPORTED_VERSION },
	{ "a modern header wants a claim",                              "2026-07-28", "{}",                 HTTP_ERA_REFUSED, RPC_INVALID_PARAMS },
	{ "both say it",                                                "2026-07-28", "{" MODERN_META "}",  HTTP_ERA_MODERN,  0 },
	{ "a claim wants a header",                                     NULL,         "{" MODERN_META "}",  HTTP_ERA_REFUSED, RPC_HEADER_MISMATCH },
	{ "a claim and a legacy header contradict each other",          "2025-11-25", "{" MODERN_META "}",  HTTP_ERA_REFUSED, RPC_HEADER_MISMATCH },
	{ "a claim that is no text is for others to judge",             "2026-07-28", "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":7}}", HTTP_ERA_MODERN, 0 },
	/* clang-format on */
};

static void test_eras(void)
{
	for (size_t i = 0; i < ARRAY_LEN(eras); i++) {
		struct http_head   h = { 0 };
		struct rpc_message m = { .kind = RPC_REQUEST, .method = "tools/list", .params = json_loads(eras[i].params, 0, NULL) };
		struct rpc_error   e = { 0 };
		enum revision      legacy = REVISION_COUNT;
		enum http_era      era;

		if (eras[i].header)
			head_store_header(&h, "mcp-protocol-version", eras[i].header);
		era = rules_decide_era(&h, &m, &legacy, &e);
		tap_ok(era == eras[i].era && (era != HTTP_ERA_REFUSED || e.code == eras[i].code) && (era != HTTP_ERA_LEGACY || (int)legacy == eras[i].code), "%s",
		       eras[i].name);
		json_decref(e.data);
		json_decref((json_t *)m.params);
		head_done(&h);
	}
}

static void test_heads(void)
{
	struct http_head h = { 0 };

	head_store_header(&h, "HOST", " \t localhost \t");
	tap_is(h.host, "localhost", "names have no case, values no blanks around them");
	head_store_header(&h, "X-Other", "1");
	head_store_header(&h, "X-Other", "2");
	tap_ok(!*h.fault, "what decides nothing may come twice");
	tap_ok(head_accepts_event_stream(&h), "who sends no Accept takes events");
	head_store_header(&h, "Accept", "application/json");
	tap_ok(!head_accepts_event_stream(&h), "who accepts only JSON does not");
	head_store_header(&h, "accept", "text/event-stream");
	tap_ok(head_accepts_event_stream(&h) && !*h.fault, "Accept may come twice");
	head_store_header(&h, "Mcp-Param-Region", NULL);
	tap_is(head_find_param(&h, "region"), "", "a header without a value is empty");
	head_store_header(&h, "mcp-param-REGION", "x");
	tap_ok(*h.fault, "what decides must not come twice");
	head_done(&h);
	for (int i = 0; i < HEAD_PARAMS_MAX + 1; i++) {
		char name[40];

		snprintf(name, sizeof name, "Mcp-Param-%d", i);
		head_store_header(&h, name, "x");
	}
	tap_ok(*h.fault && h.n_params == HEAD_PARAMS_MAX, "parameters are bounded");
	head_done(&h);
}

int main(void)
{
	test_base64();
	test_eras();
	test_heads();
	return tap_done();
}
