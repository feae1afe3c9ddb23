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
	{ "a beginning alone is not changed: a program that chose it would learn that it is one", "x ghp_0123456789", "x ghp_0123456789" },
	{ "nor is one that goes on otherwise", "ghp_0123456789abcdeX ghp_", "ghp_0123456789abcdeX ghp_" },
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

	secret_mask_init(&m, &config, "api.example.org", 443);
	for (size_t i = 0; i < len; i += pace)
		n += secret_mask_step(&m, reply + i, len - i < pace ? len - i : pace, out + n);
	n += secret_mask_finish(&m, out + n);
	out[n] = 0;
	return out;
}

static void test_masks(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok = tap_is(masked(rows[i].reply, 1000), rows[i].seen, rows[i].name);

		for (size_t pace = 1; pace < 20; pace++)
			ok &= !strcmp(masked(rows[i].reply, pace), rows[i].seen);
		tap_ok(ok, "%s, at any pace", rows[i].name);
	}
}

/* How many bytes come out, when, for each of many replies of one length: what a program sees must not depend on how they end. */
static void test_waiting(void)
{
	static const char *const ends[] = { "ghp_0123456789abcdeX", "XXXXXXXXXXXXXXXXXXXX", "XXXXXXXXXXXXXXXXghp_", "XXXghp_0123456789abc", "aaaaaaaaaaaaaaaaaaaX", "tail-of-0123456789-g" };
	static struct secret_mask m;
	static char               out[2 * NET_SECRET_VALUE_MAX];
	bool                      same = true;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		secret_mask_init(&m, &config, "api.example.org", 443);
		same &= secret_mask_step(&m, "0123456789012345678901234567890123456789", 40, out) == 40 - 22; /* the longest secret has 23 */
		same &= secret_mask_step(&m, ends[i], 20, out) == 20;
		same &= secret_mask_flush(&m, out) == 22 && !memcmp(out + 2, ends[i], 20);
		same &= secret_mask_finish(&m, out) == 0 && !m.has_masked;
	}
	tap_ok(same, "the last bytes wait, whatever they are, and are unchanged unless they are a whole secret");

	secret_mask_init(&m, &config, "api.example.org", 443);
	(void)!secret_mask_step(&m, "event ghp_0123", 14, out);
	tap_ok(secret_mask_flush(&m, out) == 14 && !memcmp(out, "event ghp_0123", 14), "a pause lets them go");
	(void)!secret_mask_step(&m, "456789abcdef.", 13, out);
	(void)!secret_mask_finish(&m, out);
	tap_ok(m.has_masked, "the rest of a secret is masked when its beginning went");
}

static void test_whose(void)
{
	struct request_set  set[NET_SECRETS_MAX];
	struct request_head get = { .method = NET_METHOD_GET, .method_text = { "GET", 3 } }, options = { .method = NET_METHOD_OPTIONS, .method_text = { "OPTIONS", 7 } };
	struct request_head trace = { .method = 0, .method_text = { "TRACE", 5 } }, small = { .method = NET_METHOD_OTHER, .method_text = { "trace", 5 } };

	tap_ok(secret_headers(&config, "api.example.org", 443, set) == 3 && !strcmp(set[0].name, "authorization") && !strcmp(set[0].value, "Bearer ghp_0123456789abcdef"),
	       "the headers of a host and port");
	tap_ok(secret_headers(&config, "api.example.org", 8443, set) == 0 &&
	       !secret_exists_for_host(&config, "api.example.org", 8443), "not of another port");
	tap_ok(!secret_exists_for_host(&config, "xapi.example.org", 443) &&
	       !secret_exists_for_host(&config, "example.org", 443), "not of another host");
	tap_ok(secret_exists_for_host(&config, "other.example.org", 443), "of another host its own");
	tap_ok(secret_allows_method(&get) && !secret_allows_method(&options) && !secret_allows_method(&trace) &&
	       !secret_allows_method(&small), "TRACE and OPTIONS would repeat it");
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
