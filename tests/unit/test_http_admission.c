/* test_http_admission.c - who is let in by his head alone */
#include "http_admission.h"
#include "inet.h"
#include "tap.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static const struct {
	const char *method, *path, *host, *origin, *authorization, *type;
	enum route  route;
	int         status;
} rows[] = {
	/* clang-format off */
	{ "POST",    "/mcp",     "localhost",       NULL,                    "Bearer " TOKEN, "application/json", ROUTE_MCP,       0   },
	{ "POST",    "/mcp",     "127.0.0.1:9",     "http://localhost:7",    "bearer " TOKEN, "application/json;x", ROUTE_MCP,     0   },
	{ "POST",    "/mcp",     "ok.example",      "https://app.example",   "Bearer " TOKEN, "application/json", ROUTE_MCP,       0   },
	{ "POST",    "/mcp",     "192.0.2.1:9015",  NULL,                    "Bearer " TOKEN, "application/json", ROUTE_MCP,       0   },
	{ "POST",    "/mcp",     NULL,              NULL,                    "Bearer " TOKEN, "application/json", ROUTE_REFUSED,   403 },
	{ "POST",    "/mcp",     "evil.example",    NULL,                    "Bearer " TOKEN, "application/json", ROUTE_REFUSED,   403 },
	{ "POST",    "/mcp",     "localhost",       "null",                  "Bearer " TOKEN, "application/json", ROUTE_REFUSED,   403 },
	{ "POST",    "/mcp",     "localhost",       "http://evil.example",   "Bearer " TOKEN, "application/json", ROUTE_REFUSED,   403 },
	{ "POST",    "/mcp",     "localhost",       NULL,                    NULL,            "application/json", ROUTE_REFUSED,   401 },
	{ "GET",     "/mcp",     "localhost",       NULL,                    NULL,            NULL,               ROUTE_REFUSED,   401 },
	{ "GET",     "/mcp",     "localhost",       NULL,                    "Bearer " TOKEN, NULL,               ROUTE_REFUSED,   405 },
	{ "POST",    "/mcp",     "localhost",       NULL,                    "Bearer " TOKEN, NULL,               ROUTE_REFUSED,   415 },
	{ "POST",    "/other",   "localhost",       NULL,                    NULL,            NULL,               ROUTE_REFUSED,   404 },
	{ "GET",     "/metrics", "localhost",       NULL,                    "Bearer " TOKEN, NULL,               ROUTE_METRICS,   0   },
	{ "GET",     "/metrics", "localhost",       NULL,                    NULL,            NULL,               ROUTE_REFUSED,   401 },
	{ "POST",    "/metrics", "localhost",       NULL,                    "Bearer " TOKEN, NULL,               ROUTE_REFUSED,   405 },
	{ "HEAD",    "/healthz", "evil.example",    "null",                  NULL,            NULL,               ROUTE_HEALTH,    0   },
	{ "POST",    "/healthz", "localhost",       NULL,                    NULL,            NULL,               ROUTE_REFUSED,   405 },
	{ "OPTIONS", "/mcp",     "localhost",       "https://app.example",   NULL,            NULL,               ROUTE_PREFLIGHT, 0   },
	{ "OPTIONS", "/mcp",     "localhost",       "http://localhost",      "Bearer " TOKEN, NULL,               ROUTE_REFUSED,   405 },
	/* clang-format on */
};

static void test_rows(const struct admission *a)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char    *sent[][2] = { { "Host", rows[i].host }, { "Origin", rows[i].origin }, { "Authorization", rows[i].authorization }, { "Content-Type", rows[i].type } };
		struct refusal r         = { 0 };
		struct http_head h       = { 0 };
		enum route     route;

		for (size_t k = 0; k < ARRAY_LEN(sent); k++)
			if (sent[k][1])
				head_store_header(&h, sent[k][0], sent[k][1]);
		route = admission_choose_route(a, &h, rows[i].method, rows[i].path, &r);
		tap_ok(route == rows[i].route && r.status == rows[i].status, "%s %s of %s from %s as %s: %d", rows[i].method, rows[i].path, rows[i].host ? rows[i].host : "nobody",
		       rows[i].origin ? rows[i].origin : "no page", rows[i].authorization ? rows[i].authorization : "nobody", rows[i].status);
		head_done(&h);
	}
}

static void test_tokens(void)
{
	static const char *const bad[] = { "", "short", "0123456789abcdef0123456789abcde", "0123456789abcdef 0123456789abcdef", "0123456789abcdef0123456789abcde\xc3\xbc" };
	struct token             t     = { 0 };
	struct err               e;
	char                     name[64];

	token_print_principal(&t, NULL, name, sizeof name);
	tap_is(name, "http", "without a token everybody is one client");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		tap_ok(token_parse(&t, bad[i], &e) < 0 && strstr(e.text, "openssl rand") && !t.wanted, "\"%s\" is no token", bad[i]);
	tap_ok(token_parse(&t, TOKEN, &e) == 0 && token_authorizes(&t, "Bearer " TOKEN), "32 characters are one");
	tap_ok(!token_authorizes(&t, NULL) && !token_authorizes(&t, "Bearer ") && !token_authorizes(&t, TOKEN) && !token_authorizes(&t, "Bearer " TOKEN "x"), "only that one fits");
	token_print_principal(&t, "Bearer " TOKEN, name, sizeof name);
	tap_ok(strlen(name) == 37 && !strstr(name, "0123456789abcdef"), "its name says nothing about it: %s", name);
	tap_ok(token_parse(&t, "# agents\nann " TOKEN "\n\nbob\t" TOKEN "x\n", &e) == 0 && token_authorizes(&t, "Bearer " TOKEN) && token_authorizes(&t, "Bearer " TOKEN "x") && !token_authorizes(&t, "Bearer " TOKEN "y"),
	       "each line lets one client in");
	token_print_principal(&t, "Bearer " TOKEN "x", name, sizeof name);
	tap_is(name, "http:bob", "which has the name of the line");
	tap_ok(token_parse(&t, "ann " TOKEN "\n" TOKEN "\n", &e) < 0 && strstr(e.text, "line 2: expected NAME TOKEN"), "of several each has a name");
	tap_ok(token_parse(&t, "ann short\n", &e) < 0 && strstr(e.text, "line 1: the bearer token has 5 characters"), "and a good token");
}

int main(void)
{
	struct admission a = { .address = "192.0.2.1", .body_max = 100, .allow_origin = json_pack("[s]", "https://app.example"), .allow_host = json_pack("[s]", "ok.example") };
	struct err       e;

	tap_ok(token_parse(&a.token, TOKEN, &e) == 0, "a token");
	test_rows(&a);
	test_tokens();
	tap_ok(inet_host_is_loopback("127.1.2.3") && inet_host_is_loopback("::1") && inet_host_is_loopback("localhost"), "loopback addresses");
	tap_ok(!inet_host_is_loopback("0.0.0.0") && !inet_host_is_loopback("::") && !inet_host_is_loopback("128.0.0.1") && !inet_host_is_loopback("localhost.x"), "others");
	json_decref((json_t *)a.allow_origin);
	json_decref((json_t *)a.allow_host);
	return tap_done();
}
