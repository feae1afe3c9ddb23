#include "net_rule.h"
#include "tap.h"
#include "text.h"

/* clang-format off */
static const struct {
	const char *name, *text, *prints; /* prints NULL: the same; "": refused */
	const char *says;
} texts[] = {
	{ "a name is a rule", "api.github.com", NULL, "" },
	{ "a name has one spelling", "API.GitHub.com.", "api.github.com", "" },
	{ "a port", "example.org:8443", NULL, "" },
	{ "a scheme", "https://example.org", NULL, "" },
	{ "plain http", "http://example.org:8080", NULL, "" },
	{ "any protocol at a port", "tcp://db.example.org:5432", NULL, "" },
	{ "all below a domain", "*.example.org", NULL, "" },
	{ "every name", "*", NULL, "" },
	{ "every name at a port", "https://*:8443", NULL, "" },
	{ "an IPv4 address", "10.0.0.7:8080", NULL, "" },
	{ "an IPv6 address", "[2001:DB8::0:7]:8080", "[2001:db8::7]:8080", "" },
	{ "an IPv6 address without a port", "[::1]", NULL, "" },
	{ "a path", "https://api.github.com/repos/", NULL, "" },
	{ "a port and a path", "example.org:8443/a/b", NULL, "" },
	{ "a slash behind the host is no path", "https://example.org/", "https://example.org", "" },

	{ "nothing is refused", "", "", "is no host" },
	{ "a word of other programs is no host", "all", "", "* for all public hosts" },
	{ "nor with a slash behind it", "off/", "", "* for all public hosts" },
	{ "nor in another spelling", "None.", "", "* for all public hosts" },
	{ "a host with such a name has a port", "host:8080", NULL, "" },
	{ "two hosts in one text are refused", "a.example,b.example", "", "one name like" },
	{ "another scheme is refused", "ftp://example.org", "", "https, http or tcp" },
	{ "a scheme in upper case is refused", "HTTPS://example.org", "", "https, http or tcp" },
	{ "tcp without a port is refused", "tcp://example.org", "", "needs a port" },
	{ "tcp with a path is refused", "tcp://example.org:1/x", "", "tcp has no paths" },
	{ "port 0 is refused", "example.org:0", "", "no port" },
	{ "port 65536 is refused", "example.org:65536", "", "no port" },
	{ "a port with a zero before it is refused", "example.org:0443", "", "no port" },
	{ "a port with a sign is refused", "example.org:+443", "", "no port" },
	{ "an empty port is refused", "example.org:", "", "no port" },
	{ "a port that is a word is refused", "example.org:https", "", "no port" },
	{ "a long port is refused", "example.org:4430000000000", "", "no port" },
	{ "user and password are refused", "https://me:pw@example.org", "", "no user and no password" },
	{ "a user is refused", "https://me@example.org", "", "no user" },
	{ "a query is refused", "example.org?x", "", "no query" },
	{ "a fragment is refused", "example.org#x", "", "no query and no fragment" },
	{ "a query behind a path is refused", "example.org/a?x", "", "not a valid path prefix" },
	{ "dots in a path are refused", "example.org/a/../b", "", "not a valid path prefix" },
	{ "encoded dots in a path are refused", "example.org/a/%2e%2E/b", "", "not a valid path prefix" },
	{ "a star inside a name is refused", "a*.example.org", "", "is no host" },
	{ "a star inside is refused", "a.*.org", "", "is no host" },
	{ "a star and a dot is refused", "*.", "", "is no host" },
	{ "a star before an address is refused", "*.1.2.3.4", "", "is no host" },
	{ "a decimal address is refused", "2130706433", "", "is no host" },
	{ "a short address is refused", "127.1:80", "", "is no host" },
	{ "IPv6 without brackets is refused", "2001:db8::7", "", "[IPv6]" },
	{ "a name in brackets is refused", "[example.org]", "", "is no host" },
	{ "IPv4 in brackets is refused", "[1.2.3.4]", "", "is no host" },
	{ "a mapped address is refused", "[::ffff:127.0.0.1]", "", "is no host" },
	{ "something behind the bracket is refused", "[::1]x:80", "", "is no host" },
	{ "an international name is refused, with how to write it", "b\xc3\xbc" "cher.example", "", "xn--" },
	{ "a control character is refused", "example.org\n", "", "cannot be shown" },
	{ "a scheme without its colon is refused", "http//example.org", "", "neither a scheme nor a path" },
	{ "a range of addresses is refused", "10.0.0.0/8", "", "name each address" },
	{ "a range of IPv6 addresses is refused", "[2001:db8::]/32", "", "name each address" },
	{ "a path of an address", "10.0.0.7/8/a", NULL, "" },
	{ "a path of digits, with a scheme", "https://10.0.0.7/8", NULL, "" },
	{ "a path that begins with two slashes, with a scheme", "https://example.org//a", NULL, "" },
	{ "an option that was taken for a host is refused", "-p", "", "is no host" },
	{ "a name that begins with a hyphen is refused below a domain, too", "*.-x.example", "", "is no host" },
	{ "blanks are refused", "example.org ", "", "is no host" },
};

/* outer covers inner, or not */
static const struct {
	const char *outer, *inner;
	bool        covers;
} pairs[] = {
	{ "example.org", "example.org", true },
	{ "example.org", "https://example.org", true },
	{ "example.org", "http://example.org", true },
	{ "example.org", "https://example.org:443", true },
	{ "example.org", "example.org:443", false },       /* also plain http at 443 */
	{ "example.org:443", "https://example.org", true },
	{ "example.org:443", "example.org", false },       /* also port 80 */
	{ "https://example.org", "example.org", false },
	{ "https://example.org", "http://example.org", false },
	{ "example.org:8443", "https://example.org:8443", true },
	{ "https://example.org:8443", "example.org:8443", false },
	{ "example.org", "example.org:8443", false },
	{ "tcp://example.org:443", "https://example.org", true },
	{ "tcp://example.org:443", "example.org:443", true },
	{ "tcp://example.org:443", "example.org", false },
	{ "example.org:443", "tcp://example.org:443", false },
	{ "example.org", "a.example.org", false },
	{ "*.example.org", "a.example.org", true },
	{ "*.example.org", "a.b.example.org", true },
	{ "*.example.org", "example.org", false },
	{ "*.example.org", "evilexample.org", false },
	{ "*.example.org", "example.org.evil.com", false },
	{ "*.example.org", "*.example.org", true },
	{ "*.example.org", "*.a.example.org", true },
	{ "*.a.example.org", "*.example.org", false },
	{ "a.example.org", "*.example.org", false },
	{ "*", "example.org", true },
	{ "*", "*.example.org", true },
	{ "*", "*", true },
	{ "*", "1.2.3.4", false },
	{ "*", "[2001:db8::1]", false },
	{ "*.org", "*", false },
	{ "1.2.3.4", "1.2.3.4", true },
	{ "1.2.3.4", "1.2.3.5", false },
	{ "example.org", "https://example.org/a", true },
	{ "example.org/a", "https://example.org", false },
	{ "example.org/a", "example.org/a/b", true },
	{ "example.org/a", "example.org/ab", false },
	{ "example.org/a/", "example.org/a", false },
};

static const struct {
	const char     *rule, *host;
	uint16_t        port;
	enum net_scheme scheme;
	bool            matches;
} targets[] = {
	{ "example.org", "example.org", 443, NET_SCHEME_HTTPS, true },
	{ "example.org", "example.org", 80, NET_SCHEME_HTTP, true },
	{ "example.org", "example.org", 443, NET_SCHEME_HTTP, false },
	{ "example.org", "example.org", 80, NET_SCHEME_HTTPS, false },
	{ "example.org", "example.org", 443, NET_SCHEME_ANY, true },
	{ "example.org", "example.org", 80, NET_SCHEME_ANY, true },
	{ "example.org", "example.org", 22, NET_SCHEME_ANY, false },
	{ "example.org", "example.org", 443, NET_SCHEME_TCP, false },
	{ "example.org", "example.org", 0, NET_SCHEME_ANY, false },
	{ "https://example.org", "example.org", 80, NET_SCHEME_ANY, false },
	{ "example.org:8443", "example.org", 8443, NET_SCHEME_HTTP, true },
	{ "example.org:8443", "example.org", 8443, NET_SCHEME_HTTPS, true },
	{ "example.org:8443", "example.org", 443, NET_SCHEME_HTTPS, false },
	{ "tcp://example.org:22", "example.org", 22, NET_SCHEME_TCP, true },
	{ "tcp://example.org:22", "example.org", 22, NET_SCHEME_HTTPS, true },
	{ "*.example.org", "www.example.org", 443, NET_SCHEME_HTTPS, true },
	{ "*.example.org", "example.org", 443, NET_SCHEME_HTTPS, false },
	{ "*.example.org", "evil-example.org", 443, NET_SCHEME_HTTPS, false },
	{ "*", "example.org", 443, NET_SCHEME_HTTPS, true },
	{ "*", "93.184.216.34", 443, NET_SCHEME_HTTPS, false },
	{ "*", "2606:4700::1111", 443, NET_SCHEME_HTTPS, false },
	{ "93.184.216.34", "93.184.216.34", 443, NET_SCHEME_HTTPS, true },
	{ "[2606:4700::1111]", "2606:4700::1111", 443, NET_SCHEME_HTTPS, true },
};

static const struct {
	const char *path;
	bool        is_clear;
} paths[] = {
	{ "/", true },
	{ "/a/b.c", true },
	{ "/.well-known/x", true },
	{ "/a..b/", true },
	{ "/x?y=../..", true },
	{ "/x?y=%u002e%00", true },
	{ "/a/%2", true },
	{ "/a;../b", true },
	{ "/my%20file", true },
	{ "/100%25", true },
	{ "/\xc3\xa9", true },
	{ "/%C3%A9", true },
	{ "/..", false },
	{ "/.", false },
	{ "/a/./b", false },
	{ "/a/../b", false },
	{ "/a/..?x", false },
	{ "/a/...", false },
	{ "/a/..b", false },
	{ "/a/%2e%2e/b", false },
	{ "/a/.%2E/b", false },
	{ "/a/..%2fb", false },
	{ "/a%2f../b", false },
	{ "/a/..\\b", false },
	{ "/a\\..\\b", false },
	{ "/a/..%5cb", false },
	{ "/a/..;x=1/b", false },
	{ "/a/.;x=1/b", false },
	{ "/a/..%3b/b", false },
	{ "/a/..%00/b", false },
	{ "/a/..%20/b", false },
	{ "/a/%20../b", false },
	{ "/a/.%20./b", false },
	{ "/a/.%09./b", false },
	{ "/a%00", false },
	{ "/a%0d%0ab", false },
	{ "/a/%252e%252e/b", false },
	{ "/a/%25252e./b", false },
	{ "/a/..%252fb", false },
	{ "/a/%u002e%u002e/b", false },
	{ "/a/%25u002e./b", false },
	{ "/a/%c0%ae%c0%ae/b", false },
	{ "/a/\xc0\xae\xc0\xae/b", false },
	{ "/a/%e0%80%ae./b", false },
	{ "/a%2525252525252525", false },
};
/* clang-format on */

static struct net_rule rule(const char *text)
{
	struct net_rule r = { 0 };
	struct err      e = { 0 };

	if (net_rule_parse(text, &r, &e) < 0)
		printf("# %s: %s\n", text, e.text);
	return r;
}

static void test_texts(void)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct net_rules one = { .n = 1 };
		struct err       e   = { 0 };
		char             text[NET_RULE_TEXT_MAX];
		const char      *prints = texts[i].prints ? texts[i].prints : texts[i].text;
		bool             ok     = net_rule_parse(texts[i].text, &one.rule[0], &e) == 0;

		net_rule_print(&one.rule[0], text);
		if (!tap_ok(ok ? !strcmp(text, prints) && net_rules_are_sound(&one) : !*prints && e.kind == ERR_BAD_SPEC && strstr(e.text, texts[i].says), "%s",
			    texts[i].name))
			printf("#   %s %s\n", ok ? text : "refused:", e.text);
	}
}

static void test_pairs(void)
{
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct net_rule outer = rule(pairs[i].outer), inner = rule(pairs[i].inner);

		tap_ok(net_rule_includes(&outer, &inner) == pairs[i].covers, "%s %s %s", pairs[i].outer, pairs[i].covers ? "covers" : "does not cover", pairs[i].inner);
	}
}

static void test_targets(void)
{
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		struct net_rule   r      = rule(targets[i].rule);
		struct net_target target = { targets[i].host, targets[i].port, targets[i].scheme };

		tap_ok(net_rule_matches(&r, &target) == targets[i].matches, "%s %s %s port %u (%d)", targets[i].rule, targets[i].matches ? "lets through" : "does not let through",
		       targets[i].host, targets[i].port, targets[i].scheme);
	}
}

static void test_paths(void)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		tap_ok(net_path_is_unambiguous(paths[i].path, strlen(paths[i].path)) == paths[i].is_clear, "%s is %s",
		       paths[i].path, paths[i].is_clear ? "clear" : "unclear");
}

static void test_ceiling_of_a_private_run(void)
{
	struct net_rule  all = { .host_kind = NET_HOST_ANYTHING };
	struct net_rules one = { 1, { all } };
	struct net_rule  a = rule("tcp://10.0.0.1:5432"), b = rule("*"), c = rule("*.example.org:99"), private = rule("example.org");

	private.is_private = 1;
	tap_ok(net_rules_are_sound(&one), "the ceiling of everything is sound");
	tap_ok(net_rule_includes(&all, &a) && net_rule_includes(&all, &b) && net_rule_includes(&all, &c) && net_rule_includes(&all, &all), "the ceiling of everything covers every rule");
	tap_ok(!net_rule_includes(&b, &all), "nothing else covers it");
	tap_ok(!net_rule_includes(&all, &private), "private addresses of names are beyond it");
	tap_ok(!net_rule_matches(&all, &(struct net_target){ "example.org", 0, NET_SCHEME_ANY }), "port 0 is reached by no rule");
	one.rule[0].port = 1;
	tap_ok(!net_rules_are_sound(&one), "a ceiling of everything with a port is not sound");
}

static void test_requests(void)
{
	struct net_rules  rules = { .n = 3 };
	struct net_target api = { "api.example.org", 443, NET_SCHEME_HTTPS }, www = { "www.example.org", 443, NET_SCHEME_HTTPS };
	struct err        e;

	rules.rule[0]         = rule("https://api.example.org/repos/");
	rules.rule[0].methods = NET_METHOD_GET | NET_METHOD_HEAD;
	rules.rule[1]         = rule("https://api.example.org/issues");
	rules.rule[1].methods = NET_METHOD_POST;
	rules.rule[2]         = rule("www.example.org");
	tap_ok(net_rule_add_path(&rules.rule[1], "/labels", &e) == 0 && rules.rule[1].paths == 2, "a second path");
	tap_ok(net_rules_are_sound(&rules), "rules with methods and paths are sound");
	tap_ok(net_rules_allow_request(&rules, &api, NET_METHOD_GET, "/repos/x?y", false), "a method and a path of one rule");
	tap_ok(!net_rules_allow_request(&rules, &api, NET_METHOD_POST, "/repos/x", false), "the method of one rule with the path of another is refused");
	tap_ok(net_rules_allow_request(&rules, &api, NET_METHOD_POST, "/issues?a=b", false), "a query may follow a path");
	tap_ok(net_rules_allow_request(&rules, &api, NET_METHOD_POST, "/labels/1", false), "any of the paths");
	tap_ok(!net_rules_allow_request(&rules, &api, NET_METHOD_POST, "/issuesx", false), "a longer segment is another path");
	tap_ok(!net_rules_allow_request(&rules, &api, NET_METHOD_GET, "/repos", false), "a path with a slash behind it is a folder");
	tap_ok(!net_rules_allow_request(&rules, &api, NET_METHOD_OPTIONS, "*", false), "a star is no path");
	tap_ok(net_rules_allow_request(&rules, &www, NET_METHOD_OTHER, "/dav", false), "a rule without methods lets others through");
	tap_ok(!net_rules_allow_request(&rules, &www, 0, "/", false), "TRACE is never let through");
	tap_ok(!net_rules_allow_request(&rules, &api, NET_METHOD_OTHER, "/repos/", false), "a rule with methods lets no others through");
	tap_ok(!net_rules_allow_private_address(&rules, &api), "no rule lets the name lead to a private address");
	rules.rule[1].is_private = 1;
	tap_ok(net_rules_allow_private_address(&rules, &api) && !net_rules_allow_private_address(&rules, &www),
	       "one does, whichever it is");
	tap_ok(net_rules_allow_request(&rules, &api, NET_METHOD_POST, "/issues", true), "at a private address: a request of the rule that says private");
	tap_ok(!net_rules_allow_request(&rules, &api, NET_METHOD_GET, "/repos/x", true), "at a private address a request of another rule is refused");
	tap_ok(net_rules_need_inspection(&rules, &api) && !net_rules_need_inspection(&rules, &www),
	       "requests are read where a rule has methods or paths");
	tap_ok(net_rules_match_host(&rules, "www.example.org") && !net_rules_match_host(&rules, "example.org"),
	       "a name is known when some rule has it");
	tap_ok(net_rules_find(&rules, &www) == &rules.rule[2] && !net_rules_find(&rules, &(struct net_target){ "x.org", 443, NET_SCHEME_ANY }), "the rule that matches is found");
	for (int i = 0; i < NET_PATHS_MAX - 2; i++)
		tap_ok(net_rule_add_path(&rules.rule[1], "/x", &e) == 0, "path %d", i + 3);
	tap_ok(net_rule_add_path(&rules.rule[1], "/x", &e) < 0 && e.kind == ERR_LIMIT, "one path too many is refused");
}

static void test_methods(void)
{
	tap_ok(net_method_parse("GET", 3) == NET_METHOD_GET && net_method_parse("DELETE", 6) == NET_METHOD_DELETE, "methods have names");
	tap_ok(net_method_parse("TRACE", 5) == 0 && net_method_parse("CONNECT", 7) == 0, "TRACE and CONNECT are never let through");
	tap_ok(net_method_parse("trace", 5) == 0 && net_method_parse("get", 3) == 0, "a known name in other letters is never let through");
	tap_ok(net_method_parse("PROPFIND", 8) == NET_METHOD_OTHER && net_method_parse("GE", 2) == NET_METHOD_OTHER, "others are others");
}

static void test_ports(void)
{
	struct net_rules rules = { 0 };
	uint16_t         ports[NET_PORTS_MAX];
	uint32_t         n = 0;

	net_rules_collect_ports(&rules, ports, &n);
	tap_ok(n == 0, "without a rule no port is listened on");
	rules.n       = 3;
	rules.rule[0] = rule("example.org:8443");
	rules.rule[1] = rule("tcp://example.org:22");
	rules.rule[2] = rule("example.net:8443");
	net_rules_collect_ports(&rules, ports, &n);
	net_rules_collect_ports(&rules, ports, &n);
	tap_ok(n == 4 && ports[0] == 80 && ports[1] == 443 && ports[2] == 8443 && ports[3] == 22, "80, 443 and each named port once");
	rules.n = 20;
	for (unsigned i = 0; i < rules.n; i++) {
		rules.rule[i]      = rule("example.org");
		rules.rule[i].port = (uint16_t)(1000 + i);
	}
	net_rules_collect_ports(&rules, ports, &n);
	tap_ok(n == NET_PORTS_MAX, "no more ports than fit");
}

static void test_sound(void)
{
	struct net_rules good = { 1, { rule("https://example.org/a") } }, r;

#define BREAK(change, name) (r = good, change, tap_ok(!net_rules_are_sound(&r), name))
	tap_ok(net_rules_are_sound(&good), "control: what was parsed is sound");
	BREAK(r.n = NET_RULES_MAX + 1, "more rules than fit are not sound");
	BREAK(memset(r.rule[0].host, 'a', NET_HOST_MAX), "a host without an end is not sound");
	BREAK(r.rule[0].host[0] = 'A', "a host in upper case is not sound");
	BREAK(r.rule[0].host[40] = 'x', "bytes behind the end of a host are not sound");
	BREAK(r.rule[0].host_kind = 77, "another kind of host is not sound");
	BREAK(r.rule[0].host_kind = NET_HOST_ADDRESS, "a name is not an address");
	BREAK(r.rule[0].host_kind = NET_HOST_PUBLIC, "every name has no host");
	BREAK(r.rule[0].scheme = 77, "another scheme is not sound");
	BREAK(r.rule[0].scheme = NET_SCHEME_TCP, "tcp with a path is not sound");
	BREAK(r.rule[0].methods = NET_METHOD_OTHER, "a method without a name is not sound");
	BREAK(r.rule[0].paths = NET_PATHS_MAX + 1, "more paths than fit are not sound");
	BREAK(r.rule[0].paths = 2, "a path that is empty is not sound");
	BREAK(memset(r.rule[0].path[0], '/', NET_PATH_MAX), "a path without an end is not sound");
	BREAK(r.rule[0].is_private = 2, "a truth value is 0 or 1");
#undef BREAK
}

int main(void)
{
	test_texts();
	test_pairs();
	test_targets();
	test_paths();
	test_ceiling_of_a_private_run();
	test_requests();
	test_methods();
	test_ports();
	test_sound();
	return tap_done();
}
