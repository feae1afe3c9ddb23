#define _GNU_SOURCE
#include "net_policy.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

/* --- rows --- */

struct rule_settings {
	const char   *host;
	const json_t *methods, *paths;
	bool          is_private;
};

struct secret_from {
	const char *file, *env, *credential;
};

struct secret_settings {
	struct secret_from from;
	const char        *host, *header;
};

/* clang-format off */
#define AT(member) offsetof(struct rule_settings, member)
const struct field net_rule_fields[] = {
	{ "host",    FIELD_STR,  AT(host),       1, NET_RULE_TEXT_MAX - 1, 0, "As a rule that is a text", NULL, NULL },
	{ "methods", FIELD_LIST, AT(methods),    0, 7,                     0, "Methods of requests that are let through, like GET; default: all", NULL, NULL },
	{ "paths",   FIELD_LIST, AT(paths),      0, NET_PATHS_MAX,         0, "What the paths of requests may begin with; default: any", NULL, NULL },
	{ "private", FIELD_BOOL, AT(is_private), 0, 1,                     0, "Whether the name may lead to an address that is not public, as one of a company's own network", NULL, NULL },
	{ 0 },
};
#undef AT

#define AT(member) offsetof(struct secret_from, member)
static const struct field from_fields[] = {
	{ "file",       FIELD_STR, AT(file),       1, 1024, 0, "A file, which only brig needs to be able to read", NULL, NULL },
	{ "env",        FIELD_STR, AT(env),        1, 256,  0, "A variable of brigd's own environment", NULL, NULL },
	{ "credential", FIELD_STR, AT(credential), 1, 255,  0, "A credential of brigd.service (LoadCredential= in systemd.exec(5))", NULL, NULL },
	{ 0 },
};
#undef AT

#define AT(member) offsetof(struct secret_settings, member)
static const struct field secret_fields[] = {
	{ "from",   FIELD_TABLE, AT(from),   0, 0,                  0, "Where its value is: one of file, env and credential", NULL, from_fields },
	{ "host",   FIELD_STR,   AT(host),   1, NET_HOST_MAX + 6,   0, "The one host that gets it, as HOST or HOST:PORT; over HTTPS only", NULL, NULL },
	{ "header", FIELD_STR,   AT(header), 3, 1024,               0, "The header that carries it, with {} where the value is: \"Authorization: Bearer {}\"", NULL, NULL },
	{ 0 },
};
#undef AT

#define AT(member) offsetof(struct net_settings, member)
const struct field net_fields[] = {
	{ "allow",    FIELD_MIXED,  AT(allow),    0, NET_RULES_MAX, 0, "What a run reaches that asks for nothing", NULL, net_rule_fields },
	{ "ceiling",  FIELD_MIXED,  AT(ceiling),  0, NET_RULES_MAX, 0, "What a run may ask for besides; without the key: in a service nothing, in a private run every public host", NULL, net_rule_fields },
	{ "deny",     FIELD_MIXED,  AT(deny),     0, NET_RULES_MAX, 0, "Hosts that no run reaches, whatever the other lists say; without methods, paths and private", NULL, net_rule_fields },
	{ "secrets",  FIELD_OBJECT, AT(secrets),  0, 0,             0, "Secrets that brig-proxy puts into requests, by name: the program has a variable NAME with a placeholder, and never the value", NULL, secret_fields },
	{ "upstream", FIELD_STR,    AT(upstream), 3, 255,           0, "HOST:PORT of the HTTP proxy through which this host reaches others", NULL, NULL },
	{ 0 },
};
#undef AT
/* clang-format on */

/* --- rules --- */

/* What is the jail itself for a program in it: an address of the loopback, or "localhost" and the names below it (RFC 6761, 6.3). */
static bool rule_names_jail_itself(const struct net_rule *rule)
{
	static const char last[] = ".localhost";
	const char       *host   = rule->host;
	size_t            n      = strlen(host);

	if (rule->host_kind == NET_HOST_PUBLIC)
		return false;
	if (rule->host_kind == NET_HOST_ADDRESS)
		return begins_with(host, "127.") || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "::1") == 0;
	return strcmp(host, last + 1) == 0 || (n >= sizeof last && strcmp(host + n - (sizeof last - 1), last) == 0);
}

/* What a program sends to itself never comes to brig-proxy. */
static int refuse_jail_itself(const struct net_rule *rule, struct err *e)
{
	char text[NET_RULE_TEXT_MAX];

	if (!rule_names_jail_itself(rule))
		return 0;
	net_rule_print(rule, text);
	return err_set(e, ERR_BAD_SPEC,
		       "%.100s is the jail itself for a program in it, and no rule leads from there to a server of this host; "
		       "start the server in the program, or name this host by a name or address of its network", text);
}

static int rule_from_json(const json_t *from, struct net_rule *ret, struct err *e)
{
	struct rule_settings s = { 0 };

	if (json_is_string(from))
		return net_rule_parse(json_string_value(from), ret, e);
	if (fields_decode(net_rule_fields, from, &s, e) < 0)
		return -1;
	if (!s.host)
		return err_set(e, ERR_BAD_SPEC, "host: missing; name one, like \"api.example.org\"");
	if (net_rule_parse(s.host, ret, e) < 0)
		return err_wrap(e, "host");
	for (size_t i = 0; i < json_array_size(s.methods); i++) {
		const char     *name   = json_string_value(json_array_get(s.methods, i));
		enum net_method method = net_method_parse(name, strlen(name));

		if (!method || method == NET_METHOD_OTHER)
			return err_set(e, ERR_BAD_SPEC, "methods: \"%.20s\" is none of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", name);
		ret->methods |= method;
	}
	for (size_t i = 0; i < json_array_size(s.paths); i++)
		if (net_rule_add_path(ret, json_string_value(json_array_get(s.paths, i)), e) < 0)
			return err_wrap(e, "paths");
	if ((ret->methods || ret->paths) && ret->scheme == NET_SCHEME_TCP)
		return err_set(e, ERR_BAD_SPEC, "methods and paths are of HTTP, and tcp:// is let through unread");
	ret->is_private = s.is_private;
	return 0;
}

/* ["none"] is an empty list: it can be written where a list cannot be, behind an option. */
static size_t count_rules(const json_t *list)
{
	const char *only = json_array_size(list) == 1 ? json_string_value(json_array_get(list, 0)) : NULL;

	return only && strcmp(only, "none") == 0 ? 0 : json_array_size(list);
}

/* is_opened: the rules let hosts through. */
static int rules_from_json(const char *name, const json_t *list, bool is_opened, struct net_rules *ret, struct err *e)
{
	const size_t n = count_rules(list);

	for (size_t i = 0; i < n; i++) {
		if (rule_from_json(json_array_get(list, i), &ret->rule[ret->n], e) < 0 ||
		    (is_opened && refuse_jail_itself(&ret->rule[ret->n], e) < 0))
			return err_wrap(e, "%s[%zu]", name, i);
		ret->n++; /* at most NET_RULES_MAX, by net_fields */
	}
	return 0;
}

/* --- an index of packages --- */

/* "https://pypi.org/simple/" becomes "https://pypi.org". A password in it would be shown to the jail, and to who lists processes. */
static int index_rule(const char *address, struct net_rule *ret, struct err *e)
{
	char        text[NET_RULE_TEXT_MAX];
	const char *host = begins_with(address, "https://") ? address + 8 : begins_with(address, "http://") ? address + 7 : NULL;
	size_t      n    = host ? (size_t)(host - address) + strcspn(host, "/") : 0;

	if (strchr(address, '@')) /* first: what has a password in it is not printed */
		return err_set(e, ERR_BAD_SPEC, "has a user name or password, which the jail would see; name an index that needs none");
	if (!host || !text_is_plain(address) || strpbrk(address, " ?#\\"))
		return err_set(e, ERR_BAD_SPEC, "\"%.60s\" is no address of an index; write one like " "\"https://pypi.org/simple/\"", address);
	if (n >= sizeof text)
		return err_set(e, ERR_BAD_SPEC, "the name of its host is too long");
	memcpy(text, address, n);
	text[n] = 0;
	if (net_rule_parse(text, ret, e) < 0 || refuse_jail_itself(ret, e) < 0)
		return -1;
	return ret->host_kind == NET_HOST_NAME || ret->host_kind == NET_HOST_ADDRESS ? 0 : err_set(e, ERR_BAD_SPEC, "\"%.60s\" names more than one host", text);
}

int net_policy_add_index(const char *address, struct net_rules *ret, struct err *e)
{
	struct net_rule *rule = &ret->rule[ret->n];

	if (ret->n + 2 > NET_RULES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d hosts", NET_RULES_MAX);
	if (index_rule(address, rule, e) < 0)
		return -1;
	ret->n++;
	return strcmp(rule->host, "pypi.org") != 0 ? 0 : net_rule_parse("https://files.pythonhosted.org", &ret->rule[ret->n++], e);
}

static int packages_from_settings(const struct net_settings *s, struct net_rules *ret, struct err *e)
{
	/* first what the profile says itself: it may allow the index's own host a private address */
	if (rules_from_json("packages: hosts", s->index_hosts, true, ret, e) < 0)
		return -1;
	for (uint32_t i = 0; i < ret->n; i++)
		if (ret->rule[i].methods || ret->rule[i].paths)
			return err_set(e, ERR_BAD_SPEC, "packages: hosts[%u]: has methods or paths, and brig-proxy reads nothing of what pip sends; leave them out", i);
	return s->index && net_policy_add_index(s->index, ret, e) < 0 ? err_wrap(e, "packages: index") : 0;
}

/* --- secrets --- */

/* Headers that frame a message, or that are for the next hop only. */
static const char *const framing[] = {
	"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive",
	"proxy-authorization", "proxy-connection",
};
static const char token[] = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"; /* in lower case */

/* "Authorization: Bearer {}" */
static int parse_secret_header(const char *text, struct net_secret_source *ret, struct err *e)
{
	size_t      n = strcspn(text, ":");
	const char *place;

	if (!text[n] || n == 0 || n >= NET_SECRET_HEADER_MAX)
		return err_set(e, ERR_BAD_SPEC,
			       "header: \"%.60s\" is not a header; write \"Authorization: Bearer {}\"", text);
	for (size_t i = 0; i < n; i++)
		ret->header[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
	if (strspn(ret->header, token) != n)
		return err_set(e, ERR_BAD_SPEC, "header: \"%.*s\" is not the name of a header", (int)n, text);
	for (size_t i = 0; i < ARRAY_LEN(framing); i++)
		if (strcmp(framing[i], ret->header) == 0)
			return err_set(e, ERR_BAD_SPEC, "header: %s is HTTP's own, and carries no secret", ret->header);
	ret->value = text + n + 1 + strspn(text + n + 1, " ");
	place      = strstr(ret->value, "{}");
	if (!place || strstr(place + 2, "{}") || text_has_control(ret->value))
		return err_set(e, ERR_BAD_SPEC, "header: \"%.60s\" must have {} once, where the secret is", text);
	return 0;
}

static int parse_secret_host(const char *text, struct net_secret_source *ret, struct err *e)
{
	struct net_rule rule;

	if (net_rule_parse(text, &rule, e) < 0)
		return err_wrap(e, "host");
	if (rule.host_kind != NET_HOST_NAME || rule.paths || rule.scheme == NET_SCHEME_HTTP || rule.scheme == NET_SCHEME_TCP)
		return err_set(e, ERR_BAD_SPEC, "host: \"%.60s\": a secret goes to one host by its name, over HTTPS; write HOST or HOST:PORT",
			       text);
	memcpy(ret->host, rule.host, sizeof ret->host);
	ret->port = rule.port ? rule.port : 443;
	return 0;
}

static const char of_variable[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789abcdefghijklmnopqrstuvwxyz";

static int secret_from_json(const char *name, const json_t *from, struct net_secret_source *ret, struct err *e)
{
	struct secret_settings s = { .host = NULL };
	size_t                 n = strlen(name);

	if (n == 0 || n >= NET_SECRET_NAME_MAX || strspn(name, of_variable) != n || (name[0] >= '0' && name[0] <= '9'))
		return err_set(e, ERR_BAD_SPEC, "is not a valid name of a variable: letters, digits and '_', at most %d", NET_SECRET_NAME_MAX - 1);
	if (!json_is_object(from))
		return err_set(e, ERR_BAD_SPEC, "expected an object with from, host and header");
	if (fields_decode(secret_fields, from, &s, e) < 0)
		return -1;
	*ret = (struct net_secret_source){ .name = name, .file = s.from.file, .env = s.from.env, .credential = s.from.credential };
	if (!!ret->file + !!ret->env + !!ret->credential != 1)
		return err_set(e, ERR_BAD_SPEC, "from: write one of file, env and credential");
	if (ret->file && ret->file[0] != '/')
		return err_set(e, ERR_BAD_SPEC, "from: file: \"%.60s\" is no absolute path", ret->file);
	if (ret->credential && (strchr(ret->credential, '/') || ret->credential[0] == '.'))
		return err_set(e, ERR_BAD_SPEC, "from: credential: \"%.60s\" is a path; name it as LoadCredential= does", ret->credential);
	if (!s.host || !s.header)
		return err_set(e, ERR_BAD_SPEC, "%s: missing", s.host ? "header" : "host");
	return parse_secret_host(s.host, ret, e) < 0 ? -1 : parse_secret_header(s.header, ret, e);
}

static int secrets_from_json(const json_t *from, struct net_policy *ret, struct err *e)
{
	const char       *name;
	json_t           *value;
	struct net_target target;

	json_object_foreach((json_t *)from, name, value) {
		struct net_secret_source *secret = &ret->secret[ret->secrets];

		if (ret->secrets == NET_SECRETS_MAX)
			return err_set(e, ERR_BAD_SPEC, "secrets: at most %d", NET_SECRETS_MAX);
		if (secret_from_json(name, value, secret, e) < 0)
			return err_wrap(e, "secrets: %.60s", name);
		/* A secret for a host that no run may reach is useless; its host is probably misspelt. */
		target = (struct net_target){ secret->host, secret->port, NET_SCHEME_HTTPS };
		if (!net_rules_find(&ret->allow, &target) && !net_rules_find(&ret->ceiling, &target))
			return err_set(e, ERR_BAD_SPEC, "secrets: %.60s: host: no rule of allow or ceiling allows %s at port %u by HTTPS", name,
				       secret->host, secret->port);
		ret->secrets++;
	}
	return 0;
}

/* --- all of it --- */

int net_policy_check_upstream(const char *text, struct err *e)
{
	struct net_rule rule;

	if (net_rule_parse(text, &rule, e) < 0)
		return err_wrap(e, "upstream");
	if ((rule.host_kind != NET_HOST_NAME && rule.host_kind != NET_HOST_ADDRESS) || !rule.port || rule.scheme != NET_SCHEME_ANY ||
	    rule.paths)
		return err_set(e, ERR_BAD_SPEC, "upstream: \"%.60s\": write HOST:PORT", text);
	return 0;
}

static int build_policy(struct net_policy *p, const struct net_settings *s, struct err *e)
{
	p->has_ceiling = s->ceiling != NULL;
	p->upstream    = s->upstream;
	if (rules_from_json("allow", s->allow, true, &p->allow, e) < 0 ||
	    rules_from_json("ceiling", s->ceiling, true, &p->ceiling, e) < 0 ||
	    rules_from_json("deny", s->deny, false, &p->deny, e) < 0 || packages_from_settings(s, &p->packages, e) < 0)
		return -1;
	/* brig-proxy takes it from the profile whether a name may lead to a private address, for all of its runs */
	for (uint32_t i = 0; i < p->packages.n && (p->allow.n || p->ceiling.n); i++)
		if (p->packages.rule[i].is_private)
			return err_set(e, ERR_BAD_SPEC, "packages: hosts[%u]: private would count for programs, too, since the profile has a network; write a profile of its own for packages", i);
	if (p->ceiling.n + p->packages.n > NET_RULES_MAX)
		return err_set(e, ERR_BAD_SPEC, "ceiling: with the hosts of packages more than %d", NET_RULES_MAX);
	/* A connection is refused by its host and port, before anything is read of it. */
	for (unsigned i = 0; i < p->deny.n; i++)
		if (p->deny.rule[i].methods || p->deny.rule[i].paths || p->deny.rule[i].is_private)
			return err_set(e, ERR_BAD_SPEC, "deny[%u]: has methods, paths or private, and deny refuses a host as a whole; "
			               "to open a part of a host, name that part in allow", i);
	if (secrets_from_json(s->secrets, p, e) < 0)
		return -1;
	return s->upstream ? net_policy_check_upstream(s->upstream, e) : 0;
}

int net_policy_build(struct net_policy **ret, const struct net_settings *s, struct err *e)
{
	struct net_policy *p;

	*ret = NULL;
	if (!s->allow && !s->ceiling && !s->deny && !s->secrets && !s->upstream && !s->index)
		return 0;
	p = calloc(1, sizeof *p);
	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (build_policy(p, s, e) < 0) {
		free(p);
		return -1;
	}
	*ret = p;
	return 0;
}

/* --- what a run gets --- */

void net_policy_copy_ceiling(const struct net_policy *p, bool is_private, struct net_rules *ret)
{
	if (p && p->has_ceiling) {
		net_rules_copy(ret, &p->ceiling);
		return;
	}
	ret->n = is_private;
	if (is_private) {
		memset(ret->rule, 0, sizeof *ret->rule); /* with its padding, which is sent to another process */
		ret->rule[0].host_kind = NET_HOST_ANYTHING;
	}
}

bool net_policy_allows_any_host(const struct net_policy *p)
{
	return p && (p->allow.n || p->ceiling.n || p->packages.n);
}

static bool rules_include_rule(const struct net_rules *rules, const struct net_rule *asked)
{
	for (uint32_t i = 0; i < rules->n; i++)
		if (net_rule_includes(&rules->rule[i], asked))
			return true;
	return false;
}

/* What a request is checked against. */
struct grant {
	const struct net_policy *policy; /* or NULL */
	struct net_rules         ceiling;
	const char              *profile;
	bool                     is_private;
};

static int grant_rule(const struct grant *g, const char *text, const char *field, struct net_rule *ret,
		      struct denial *why)
{
	const struct net_policy *p = g->policy;
	struct err               e;

	if (net_rule_parse(text, ret, &e) < 0 || refuse_jail_itself(ret, &e) < 0)
		return deny_err(why, DENIAL_bad_field, field, &e);
	if (p && rules_include_rule(&p->deny, ret))
		return deny(why, DENIAL_denied, field, "%.100s is on the list of hosts that no run of profile %s may reach (network, deny)",
			    text, g->profile);
	if (!(p && rules_include_rule(&p->allow, ret)) && !rules_include_rule(&g->ceiling, ret))
		return deny(why, DENIAL_above_ceiling, field, "%.100s is not among the hosts that runs of profile %s may ask for; "
			    "\"network\": {\"ceiling\": [\"%.100s\"]} in %s.json allows it", text, g->profile, text, g->profile);
	if (!g->is_private && !net_policy_can_inspect(p, ret))
		return deny(why, DENIAL_above_ceiling, field, "%.100s has a path, and a service reads those of hosts alone for which the "
			    "profile %s has paths, methods or a secret; leave the path out", text, g->profile);
	return 0;
}

int net_policy_grant_rules(const struct net_policy *p, const char *profile, bool is_private, const json_t *asked,
			   struct net_rules *ret, struct denial *why)
{
	struct grant *g;
	char          field[32];
	int           done = 0;

	ret->n = 0;
	if (!asked && p)
		net_rules_copy(ret, &p->allow);
	if (count_rules(asked) == 0)
		return 0;
	g = malloc(sizeof *g);
	if (!g)
		return deny(why, DENIAL_broken, NULL, "out of memory");
	*g = (struct grant){ .policy = p, .profile = profile, .is_private = is_private };
	net_policy_copy_ceiling(p, is_private, &g->ceiling);
	for (size_t i = 0; done == 0 && i < json_array_size(asked) && i < NET_RULES_MAX; i++) {
		snprintf(field, sizeof field, "network[%zu]", i);
		done = grant_rule(g, json_string_value(json_array_get(asked, i)), field, &ret->rule[ret->n++], why);
	}
	free(g);
	return done;
}

void net_policy_collect_ports(const struct net_policy *p, uint16_t ports[NET_PORTS_MAX], uint32_t *n)
{
	if (!net_policy_allows_any_host(p))
		return;
	net_rules_collect_ports(&p->allow, ports, n);
	net_rules_collect_ports(&p->ceiling, ports, n);
	net_rules_collect_ports(&p->packages, ports, n);
}

/* --- as JSON --- */

static json_t *list_or_empty(const json_t *list)
{
	return list ? json_incref((json_t *)list) : json_array();
}

json_t *net_policy_to_json(const struct net_policy *p, const struct net_settings *settings)
{
	json_t *secrets;

	if (!p)
		return json_null();
	secrets = json_object();
	for (const struct net_secret_source *s = p->secret; s < p->secret + p->secrets; s++)
		json_object_set_new(secrets, s->name, s->port == 443 ? json_string(s->host) : json_sprintf("%s:%u", s->host, s->port));
	return json_pack("{so so so so}", "allow", list_or_empty(settings->allow), "ceiling",
			 p->has_ceiling ? list_or_empty(settings->ceiling) : json_null(), "deny",
			 list_or_empty(settings->deny), "secrets", secrets);
}
