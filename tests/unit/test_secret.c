#include "secret.h"
#include "tap.h"

static struct proxy_config config;

static void add(const char *host, uint16_t port, const char *header, const char *before, const char *secret)
{
	struct net_secret *s = &config.secret[config.secrets++];

	memset(s, 0, sizeof *s);
	snprintf(s->host, sizeof s->host, "%s", host);
	snprintf(s->header, sizeof s->header, "%s", header);
	snprintf(s->value, sizeof s->value, "%s%s", before, secret);
	s->port        = port;
	s->secret_from = (uint32_t)strlen(before);
	s->secret_len  = (uint32_t)strlen(secret);
}

/* clang-format off */
static const struct {
	const char *name, *reply, *seen;
} rows[] = {
	{ "a reply without a secret is not changed", "{\"user\":\"octocat\"}", "{\"user\":\"octocat\"}" },
	{ "a secret becomes asterisks", "authorization: Bearer ghp_0123456789abcdef\r\n", "authorization: Bearer ********************\r\n" },
	{ "twice", "ghp_0123456789abcdefghp_0123456789abcdef", "****************************************" },
	{ "a beginning alone at the end as well", "x ghp_0123456789", "x **************" },
	{ "a beginning that goes on otherwise is not changed", "ghp_0123456789abcdeX ghp_", "ghp_0123456789abcdeX ****" },
	{ "a beginning before the secret", "ghp_ghp_0123456789abcdef!", "ghp_********************!" },
	{ "another secret of the host", "aaaaaaaaaaaaaaaaaaaaB", "********************B" },
	{ "secrets of letters that repeat", "aaaaaaaaaaaaaaaaaaaaaaa.", "***********************." },
	{ "a secret of another host is not looked for", "other-secret-0123456789", "other-secret-0123456789" },
	{ "secrets that overlap", "Xghp_0123456789abcdefaaY", "X********************aaY" },
	{ "a secret that ends in another's beginning", "tail-of-0123456789-ghp_0123456789abcdef.", "***************************************." },
	{ "a letter at the end passes", "message g", "message g" },
};
/* clang-format on */

static const char *masked(const char *reply, size_t pace)
{
	static struct secret_mask m;
	static char               out[4 * NET_SECRET_VALUE_MAX];
	size_t                    n = 0, len = strlen(reply);

	secret_mask_begin(&m, &config, "api.example.org", 443);
	for (size_t i = 0; i < len; i += pace)
		n += secret_mask_step(&m, reply + i, len - i < pace ? len - i : pace, out + n);
	n += secret_mask_end(&m, out + n);
	out[n] = 0;
	return out;
}

/* What may have passed already is a little of a beginning: asterisks there are as good. */
static bool is_as_good(const char *got, const char *want, const char *reply)
{
	size_t little = 0, n = strlen(want);

	if (strlen(got) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool passed = got[i] == reply[i] && want[i] == '*';

		little = passed ? little + 1 : 0;
		if ((got[i] != want[i] && !passed) || little > 2)
			return false;
	}
	return true;
}

static void test_masks(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok = tap_is(masked(rows[i].reply, 1000), rows[i].seen, rows[i].name);

		for (size_t pace = 1; pace < 20; pace++)
			ok &= is_as_good(masked(rows[i].reply, pace), rows[i].seen, rows[i].reply);
		tap_ok(ok, "%s, at any pace", rows[i].name);
	}
}

static void test_waiting(void)
{
	static struct secret_mask m;
	static char               out[2 * NET_SECRET_VALUE_MAX];

	secret_mask_begin(&m, &config, "api.example.org", 443);
	tap_ok(secret_mask_step(&m, "event g", 7, out) == 7, "one letter of a secret does not keep a message waiting");
	tap_ok(secret_mask_step(&m, "hp_", 3, out) == 0, "more of it does");
	tap_ok(secret_mask_step(&m, "x", 1, out) == 4 && !memcmp(out, "hp_x", 4), "until it goes on otherwise");
	tap_ok(!m.has_masked, "nothing was masked");
	secret_mask_step(&m, "g", 1, out);
	tap_ok(secret_mask_step(&m, "hp_0123456789abcdef", 19, out) == 19 && !memcmp(out, "*******************", 19) && m.has_masked, "the rest of a secret is masked when its first letter went");
}

static void test_whose(void)
{
	struct request_set  set[NET_SECRETS_MAX];
	struct request_head get = { .method = NET_METHOD_GET, .method_text = { "GET", 3 } }, options = { .method = NET_METHOD_OPTIONS, .method_text = { "OPTIONS", 7 } };
	struct request_head trace = { .method = 0, .method_text = { "TRACE", 5 } }, small = { .method = NET_METHOD_OTHER, .method_text = { "trace", 5 } };

	tap_ok(secret_headers(&config, "api.example.org", 443, set) == 3 && !strcmp(set[0].name, "authorization") && !strcmp(set[0].value, "Bearer ghp_0123456789abcdef"),
	       "the headers of a host and port");
	tap_ok(secret_headers(&config, "api.example.org", 8443, set) == 0 && !secret_is_for(&config, "api.example.org", 8443), "not of another port");
	tap_ok(!secret_is_for(&config, "xapi.example.org", 443) && !secret_is_for(&config, "example.org", 443), "not of another host");
	tap_ok(secret_is_for(&config, "other.example.org", 443), "of another host its own");
	tap_ok(secret_allows(&get) && !secret_allows(&options) && !secret_allows(&trace) && !secret_allows(&small), "TRACE and OPTIONS would repeat it");
}

int main(void)
{
	add("api.example.org", 443, "authorization", "Bearer ", "ghp_0123456789abcdef");
	add("api.example.org", 443, "x-key", "", "aaaaaaaaaaaaaaaaaaaa");
	add("api.example.org", 443, "x-tail", "", "tail-of-0123456789-ghp_");
	add("other.example.org", 443, "authorization", "", "other-secret-0123456789");
	test_masks();
	test_waiting();
	test_whose();
	return tap_done();
}
