/*
 * fuzz_net_rule.c - texts of rules, hosts and paths: what is printed is the same rule, what a rule lets through is below its path to every reader
 *
 * Each ends with a NUL: a rule, another one, a host, a path of a request.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "net_rule.h"

static bool read_rule(const char *text, struct net_rule *ret)
{
	struct err e = { 0 };

	if (net_rule_parse(text, ret, &e) == 0)
		return true;
	must_say_why(&e);
	return false;
}

static struct net_target target_of(const struct net_rule *r, const char *host)
{
	bool            is_http = r->scheme == NET_SCHEME_HTTP;
	enum net_scheme scheme  = r->scheme == NET_SCHEME_ANY ? NET_SCHEME_HTTPS : (enum net_scheme)r->scheme;

	return (struct net_target){ host, r->port ? r->port : is_http ? 80 : 443, scheme };
}

static void must_be_sound(const struct net_rule *r)
{
	char             text[NET_RULE_TEXT_MAX];
	struct net_rule  again;
	struct net_rules rules = { 1, { *r } };

	net_rule_print(r, text);
	must_about(text, text_is_plain(text) && read_rule(text, &again) && memcmp(&again, r, sizeof again) == 0);
	must_about(text, net_rules_are_sound(&rules) && net_rule_includes(r, r));
}

/* What the inner one matches the outer one matches. */
static void must_cover(const struct net_rule *outer, const struct net_rule *inner, const char *host)
{
	struct net_target at_host = target_of(inner, host), at_own = target_of(inner, inner->host);

	if (!net_rule_includes(outer, inner))
		return;
	if (net_rule_matches(inner, &at_host))
		must_about(host, net_rule_matches(outer, &at_host));
	if (*inner->host && net_rule_matches(inner, &at_own))
		must_about(inner->host, net_rule_matches(outer, &at_own));
}

static void check_host(const char *text, char ret[NET_HOST_MAX])
{
	char again[NET_HOST_MAX];
	bool is_address, still;

	if (!net_host_canonicalize(text, strlen(text), ret, &is_address)) {
		strcpy(ret, "shop.example");
		return;
	}
	must_about(ret, text_is_plain(ret) && net_host_canonicalize(ret, strlen(ret), again, &still) &&
		   still == is_address && strcmp(ret, again) == 0);
}

static int hex(char c)
{
	const char *digits = "0123456789abcdef0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) % 16 : -1;
}

/* Percent-encoding undone once, and "\" as "/": as a careless server reads a path. */
static void decode(const char *path, char *ret)
{
	for (; *path && *path != '?'; path++) {
		char c = *path;

		if (c == '%' && hex(path[1]) >= 0 && hex(path[2]) >= 0) {
			c = (char)(hex(path[1]) << 4 | hex(path[2]));
			path += 2;
		}
		*ret++ = c == '\\' ? '/' : c;
	}
	*ret = 0;
}

/* Segments "." and "..", also with ";..." behind them. */
static bool has_dots(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t n = strcspn(at, "/;");

		if ((n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return true;
	}
	return false;
}

static void check_path(const struct net_rule *r, const char *path)
{
	struct net_rules  rules  = { 1, { *r } };
	struct net_target target = target_of(r, r->host);
	char             *plain  = malloc(strlen(path) + 1);
	size_t            n      = strlen(r->path[0]);

	must(plain);
	decode(path, plain);
	if (net_path_is_unambiguous(path, strlen(path)))
		must_about(path, !has_dots(plain));
	if (r->paths && r->path[0][1] && net_rules_allow_request(&rules, &target, NET_METHOD_GET, path, false)) {
		must_about(path, strncmp(path, r->path[0], n) == 0 && (r->path[0][n - 1] == '/' || strchr("/?", path[n])));
		must_about(path, !has_dots(plain));
	}
	must(!net_rules_allow_request(&rules, &target, 0, path, false));
	free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char           *text = take_text(&data, &size), *other = take_text(&data, &size), *name = take_text(&data, &size), *path = take_text(&data, &size);
	struct net_rule rule, second;
	char            host[NET_HOST_MAX];

	check_host(name, host);
	if (read_rule(text, &rule)) {
		must_be_sound(&rule);
		check_path(&rule, path);
		if (read_rule(other, &second)) {
			must_cover(&rule, &second, host);
			must_cover(&second, &rule, host);
		}
	}
	free(text);
	free(other);
	free(name);
	free(path);
	return 0;
}
