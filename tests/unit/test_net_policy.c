/* test_net_policy.c - what a profile says about the network, and what a request gets of it */
#include "net_policy.h"
#include "profile.h"
#include "tap.h"

#define PROFILE(network) "{\"rootfs\":\"b\",\"policy\":\"p\",\"network\":" network "}"
#define SECRET(from, host, header) PROFILE("{\"allow\":[\"a.example\"],\"secrets\":{\"T\":{\"from\":" from ",\"host\":\"" host "\",\"header\":\"" header "\"}}}")

static const struct {
	const char *name, *json, *says; /* says NULL: it is accepted */
} files[] = {
	{ "a list of hosts is accepted", PROFILE("{\"allow\":[\"pypi.org\",\"*.pypi.org:8443\",\"tcp://db.example:5432\"]}"), NULL },
	{ "a rule may be an object", PROFILE("{\"allow\":[{\"host\":\"a.example\",\"methods\":[\"GET\"],\"paths\":[\"/x/\"],\"private\":true}]}"), NULL },
	{ "a rule that is a number is refused", PROFILE("{\"allow\":[1]}"), "network: allow[0]: expected a text or an object, not 1" },
	{ "a rule without a host is refused", PROFILE("{\"allow\":[\"a.example\",{\"methods\":[\"GET\"]}]}"), "network: allow[1]: host: missing" },
	{ "a rule with an unknown key is refused", PROFILE("{\"allow\":[{\"host\":\"a.example\",\"method\":\"GET\"}]}"), "network: allow[0]: method: no such setting" },
	{ "an address in another spelling is refused", PROFILE("{\"deny\":[\"0177.0.0.1\"]}"), "network: deny[0]: \"0177.0.0.1\"" },
	{ "deny refuses whole hosts: a method is not overlooked", PROFILE("{\"deny\":[\"b.example\",{\"host\":\"a.example\",\"methods\":[\"POST\"]}]}"), "network: deny[1]: has methods, paths or private" },
	{ "deny refuses whole hosts: a path is not overlooked", PROFILE("{\"deny\":[\"a.example/upload\"]}"), "network: deny[0]: has methods, paths or private" },
	{ "deny names a port", PROFILE("{\"allow\":[\"a.example\"],\"deny\":[\"http://a.example\",\"a.example:8443\"]}"), NULL },
	{ "an unknown method is refused", PROFILE("{\"allow\":[{\"host\":\"a.example\",\"methods\":[\"FETCH\"]}]}"), "network: allow[0]: methods: \"FETCH\" is none of GET" },
	{ "TRACE is refused", PROFILE("{\"allow\":[{\"host\":\"a.example\",\"methods\":[\"TRACE\"]}]}"), "network: allow[0]: methods: \"TRACE\"" },
	{ "tcp has no methods", PROFILE("{\"allow\":[{\"host\":\"tcp://a.example:1\",\"methods\":[\"GET\"]}]}"), "network: allow[0]: methods and paths" },
	{ "an address of the jail itself cannot be allowed", PROFILE("{\"allow\":[\"a.example\",{\"host\":\"http://127.0.0.2:8000\"}]}"), "network: allow[1]: http://127.0.0.2:8000 is the jail itself" },
	{ "nor be below a ceiling", PROFILE("{\"ceiling\":[\"*.localhost\"]}"), "network: ceiling[0]: *.localhost is the jail itself" },
	{ "it may be denied", PROFILE("{\"allow\":[\"a.example\"],\"deny\":[\"localhost\"]}"), NULL },
	{ "an unknown key of network is refused", PROFILE("{\"alow\":[]}"), "network: alow: no such setting" },
	{ "an upstream proxy has a port", PROFILE("{\"upstream\":\"proxy.example\"}"), "network: upstream: \"proxy.example\": write HOST:PORT" },
	{ "an upstream proxy is accepted", PROFILE("{\"upstream\":\"proxy.example:3128\"}"), NULL },
	{ "a secret is accepted", SECRET("{\"env\":\"T\"}", "a.example", "Authorization: Bearer {}"), NULL },
	{ "a secret comes from somewhere", SECRET("{}", "a.example", "X: {}"), "network: secrets: T: from: write one of file, env and credential" },
	{ "a secret comes from one place", SECRET("{\"env\":\"T\",\"file\":\"/x\"}", "a.example", "X: {}"), "network: secrets: T: from: write one of" },
	{ "a secret's file is absolute", SECRET("{\"file\":\"x\"}", "a.example", "X: {}"), "network: secrets: T: from: file: \"x\" is no absolute path" },
	{ "a credential is no path", SECRET("{\"credential\":\"../x\"}", "a.example", "X: {}"), "network: secrets: T: from: credential: \"../x\" is a path" },
	{ "a secret goes to one host", SECRET("{\"env\":\"T\"}", "*.example", "X: {}"), "network: secrets: T: host: \"*.example\"" },
	{ "a secret never goes by HTTP", SECRET("{\"env\":\"T\"}", "http://a.example", "X: {}"), "network: secrets: T: host: \"http://a.example\"" },
	{ "a secret's host is reachable", SECRET("{\"env\":\"T\"}", "b.example", "X: {}"), "network: secrets: T: host: no rule of allow or ceiling allows b.example" },
	{ "a secret's header says where it is", SECRET("{\"env\":\"T\"}", "a.example", "X: y"), "network: secrets: T: header: \"X: y\" must have {} once" },
	{ "a secret's header is not one of framing", SECRET("{\"env\":\"T\"}", "a.example", "Content-Length: {}"), "network: secrets: T: header: content-length is HTTP's own" },
	{ "a secret's header has a name", SECRET("{\"env\":\"T\"}", "a.example", "X Y: {}"), "network: secrets: T: header: \"X Y\" is not the name" },
	{ "a secret is named like a variable", PROFILE("{\"secrets\":{\"1x\":{}}}"), "network: secrets: 1x: is not a valid name of a variable" },
};

static void check_files(void)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		scoped_profile p = { 0 };
		struct err     e = { 0 };
		int            r = profile_parse(&p, "x", files[i].json, strlen(files[i].json), &e);

		tap_ok(files[i].says ? r < 0 && strncmp(e.text, files[i].says, strlen(files[i].says)) == 0 : r == 0, "%s", files[i].name);
		if (r < 0)
			printf("# %s\n", e.text);
	}
}

#define ALLOW   "\"allow\":[\"pypi.org\",{\"host\":\"api.example\",\"methods\":[\"GET\"]}]"
#define CEILING ",\"ceiling\":[\"*.debian.org\"]"
#define DENY    ",\"deny\":[\"bad.debian.org\",\"upload.pypi.org\"]"

enum { SERVICE, PRIVATE, OK = -1 };

static const struct {
	const char *name, *network, *asked; /* asked NULL: nothing */
	bool        is_private;
	int         code;  /* enum denial_code, or OK */
	uint32_t    rules; /* granted */
	const char *says;  /* beginning of the refusal */
} grants[] = {
	{ "who asks for nothing gets what the profile allows", "{" ALLOW "}", NULL, SERVICE, OK, 2, "" },
	{ "an empty list is no network", "{" ALLOW "}", "[]", PRIVATE, OK, 0, "" },
	{ "what is allowed may be asked for", "{" ALLOW "}", "[\"https://pypi.org\"]", SERVICE, OK, 1, "" },
	{ "more than is allowed may not", "{" ALLOW "}", "[\"pypi.org:8443\"]", SERVICE, DENIAL_above_ceiling, 0, "pypi.org:8443 is not among the hosts that runs of profile x may ask for; \"network\": {\"ceiling\": [\"pypi.org:8443\"]} in x.json" },
	{ "a host with all methods is more than one with GET", "{" ALLOW "}", "[\"api.example\"]", SERVICE, DENIAL_above_ceiling, 0, "api.example is not among the hosts " },
	{ "what is below the ceiling may be asked for", "{" ALLOW CEILING "}", "[\"deb.debian.org\",\"pypi.org\"]", SERVICE, OK, 2, "" },
	{ "the refusal of one refuses all", "{" ALLOW CEILING "}", "[\"deb.debian.org\",\"evil.example\"]", SERVICE, DENIAL_above_ceiling, 0, "evil.example is not among the hosts " },
	{ "what is above the ceiling may not, by its user either", "{" ALLOW CEILING "}", "[\"evil.example\"]", PRIVATE, DENIAL_above_ceiling, 0, "evil.example is not among the hosts " },
	{ "deny wins over the ceiling", "{" ALLOW CEILING DENY "}", "[\"bad.debian.org\"]", SERVICE, DENIAL_denied, 0, "bad.debian.org is on the list of hosts that no run " },
	{ "deny wins in a private run", "{" ALLOW DENY "}", "[\"upload.pypi.org\"]", PRIVATE, DENIAL_denied, 0, "upload.pypi.org is on the list " },
	{ "a service without a ceiling lets nothing be asked for", "{\"deny\":[\"a.example\"]}", "[\"b.example\"]", SERVICE, DENIAL_above_ceiling, 0, "b.example is not among the hosts " },
	{ "nor where the profile is silent", "{}", "[\"b.example\"]", SERVICE, DENIAL_above_ceiling, 0, "b.example is not among the hosts " },
	{ "a private run may ask for any host", "{}", "[\"b.example\",\"tcp://c.example:22\",\"*\"]", PRIVATE, OK, 3, "" },
	{ "a private run may ask for an address", "{}", "[\"10.0.0.5:8080\",\"[fd00::1]:80\"]", PRIVATE, OK, 2, "" },
	{ "localhost is the jail itself", "{}", "[\"localhost\"]", PRIVATE, DENIAL_bad_field, 0, "localhost is the jail itself for a program in it" },
	{ "so are names below it", "{}", "[\"https://a.localhost\"]", PRIVATE, DENIAL_bad_field, 0, "https://a.localhost is the jail itself" },
	{ "so are its addresses", "{}", "[\"127.0.0.1:80\"]", PRIVATE, DENIAL_bad_field, 0, "127.0.0.1:80 is the jail itself" },
	{ "and those of IPv6", "{}", "[\"[::1]\"]", PRIVATE, DENIAL_bad_field, 0, "[::1] is the jail itself" },
	{ "and every address of a host", "{}", "[\"0.0.0.0:80\"]", PRIVATE, DENIAL_bad_field, 0, "0.0.0.0:80 is the jail itself" },
	{ "a name that only ends alike is another", "{}", "[\"notlocalhost\",\"localhost.example\"]", PRIVATE, OK, 2, "" },
	{ "a ceiling that is empty is one", "{\"ceiling\":[]}", "[\"b.example\"]", PRIVATE, DENIAL_above_ceiling, 0, "b.example is not among the hosts " },
	{ "every public name may be the ceiling, and no address", "{\"ceiling\":[\"*\"]}", "[\"10.0.0.5\"]", SERVICE, DENIAL_above_ceiling, 0, "10.0.0.5 is not among the hosts " },
	{ "what is no rule is no request", "{" ALLOW "}", "[\"pypi.org\",\"\"]", SERVICE, DENIAL_bad_field, 0, "\"\" is no host" },
	{ "a path needs a host that is read", "{\"ceiling\":[\"*\"]}", "[\"https://pypi.org/simple/\"]", SERVICE, DENIAL_above_ceiling, 0, "https://pypi.org/simple/ has a path, " },
	{ "a path of a host that is read may be asked for", "{\"ceiling\":[\"https://pypi.org/simple/\"]}", "[\"https://pypi.org/simple/x/\"]", SERVICE, OK, 1, "" },
	{ "a private run reads what it asks for", "{}", "[\"https://pypi.org/simple/\"]", PRIVATE, OK, 1, "" },
};

static void check_grants(void)
{
	static struct net_rules rules; /* large */

	for (size_t i = 0; i < ARRAY_LEN(grants); i++) {
		scoped_profile p     = { 0 };
		struct err     e     = { 0 };
		struct denial  why   = { 0 };
		json_t        *asked = grants[i].asked ? json_loads(grants[i].asked, 0, NULL) : NULL;
		char           text[1024];
		int            r;

		snprintf(text, sizeof text, PROFILE("%s"), grants[i].network);
		if (profile_parse(&p, "x", text, strlen(text), &e) < 0) {
			tap_ok(false, "%s", e.text);
			continue;
		}
		r = net_policy_grant_rules(p.net, "x", grants[i].is_private, asked, &rules, &why);
		tap_ok(grants[i].code == OK ? r == 0 && rules.n == grants[i].rules && net_rules_are_sound(&rules)
					    : r < 0 && (int)why.code == grants[i].code && strncmp(why.text, grants[i].says, strlen(grants[i].says)) == 0 && strncmp(why.field, "network[", 8) == 0,
		       "%s", grants[i].name);
		if (r < 0)
			printf("# %s: %s\n", why.field, why.text);
		json_decref(asked);
	}
}

int main(void)
{
	check_files();
	check_grants();
	return tap_done();
}
