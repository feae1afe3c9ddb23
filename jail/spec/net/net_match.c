#include "net_rule.h"
#include "text.h"

#include <string.h>

enum { HTTPS_PORT = 443, HTTP_PORT = 80 };

/* host is canonical, so a name has no colon and no last label of digits only (net_host.c). */
static bool host_is_address(const char *host)
{
	const char *dot = strrchr(host, '.'), *last = dot ? dot + 1 : "";

	return strchr(host, ':') || (*last && last[strspn(last, "0123456789")] == 0);
}

/* "a.example.org" is below "example.org"; "example.org" and "anexample.org" are not. */
static bool host_is_subdomain_of(const char *host, const char *domain)
{
	size_t n = strlen(host), d = strlen(domain);

	return n > d + 1 && host[n - d - 1] == '.' && strcmp(host + n - d, domain) == 0;
}

static bool rule_matches_host(const struct net_rule *r, const char *host)
{
	switch ((enum net_host_kind)r->host_kind) {
	case NET_HOST_NAME:
	case NET_HOST_ADDRESS:
		return strcmp(r->host, host) == 0;
	case NET_HOST_BELOW:
		return host_is_subdomain_of(host, r->host);
	case NET_HOST_PUBLIC:
		return !host_is_address(host);
	case NET_HOST_ANYTHING:
		return true;
	}
	return false;
}

static bool scheme_may_be(enum net_scheme scheme, enum net_scheme known)
{
	return scheme == known || scheme == NET_SCHEME_ANY;
}

/* Whether the rule allows the scheme at the port. scheme: NET_SCHEME_ANY if it is not known yet. */
static bool rule_matches_port(const struct net_rule *r, uint16_t port, enum net_scheme scheme)
{
	bool https = port == (r->port ? r->port : HTTPS_PORT) && scheme_may_be(scheme, NET_SCHEME_HTTPS);
	bool http  = port == (r->port ? r->port : HTTP_PORT) && scheme_may_be(scheme, NET_SCHEME_HTTP);

	if (r->host_kind == NET_HOST_ANYTHING)
		return port != 0;
	switch ((enum net_scheme)r->scheme) {
	case NET_SCHEME_TCP:
		return port != 0 && port == r->port;
	case NET_SCHEME_HTTPS:
		return https;
	case NET_SCHEME_HTTP:
		return http;
	case NET_SCHEME_ANY:
		return https || http;
	}
	return false;
}

/* --- one rule inside of another --- */

static bool rule_includes_host(const struct net_rule *outer, const struct net_rule *inner)
{
	switch ((enum net_host_kind)inner->host_kind) {
	case NET_HOST_NAME:
	case NET_HOST_ADDRESS:
		return rule_matches_host(outer, inner->host);
	case NET_HOST_BELOW:
		return outer->host_kind == NET_HOST_BELOW ? strcmp(outer->host, inner->host) == 0 ||
		       host_is_subdomain_of(inner->host, outer->host)
							  : outer->host_kind == NET_HOST_PUBLIC || outer->host_kind == NET_HOST_ANYTHING;
	case NET_HOST_PUBLIC:
		return outer->host_kind == NET_HOST_PUBLIC || outer->host_kind == NET_HOST_ANYTHING;
	case NET_HOST_ANYTHING:
		return outer->host_kind == NET_HOST_ANYTHING;
	}
	return false;
}

static bool rule_includes_port(const struct net_rule *outer, const struct net_rule *inner)
{
	uint16_t https = inner->port ? inner->port : HTTPS_PORT, http = inner->port ? inner->port : HTTP_PORT;

	if (inner->host_kind == NET_HOST_ANYTHING)
		return outer->host_kind == NET_HOST_ANYTHING;
	if (inner->scheme == NET_SCHEME_TCP)
		return rule_matches_port(outer, inner->port, NET_SCHEME_TCP);
	return (inner->scheme == NET_SCHEME_HTTP || rule_matches_port(outer, https, NET_SCHEME_HTTPS)) &&
	       (inner->scheme == NET_SCHEME_HTTPS || rule_matches_port(outer, http, NET_SCHEME_HTTP));
}

/* "/repos" is a prefix of "/repos", "/repos/x" and "/repos?x", but not of "/repository". */
static bool path_has_prefix(const char *prefix, const char *path)
{
	size_t n = strlen(prefix);

	return begins_with(path, prefix) && (prefix[n - 1] == '/' || path[n] == 0 || path[n] == '/' || path[n] == '?');
}

/* "/" allows every path, also one that servers may take for several. */
static bool rule_allows_path(const struct net_rule *r, const char *path)
{
	for (unsigned i = 0; i < r->paths; i++)
		if (r->path[i][1] == 0 ||
		    (path_has_prefix(r->path[i], path) && net_path_is_unambiguous(path, strlen(path))))
			return true;
	return r->paths == 0;
}

static bool rule_includes_paths(const struct net_rule *outer, const struct net_rule *inner)
{
	for (unsigned i = 0; i < inner->paths; i++)
		if (!rule_allows_path(outer, inner->path[i]))
			return false;
	return inner->paths > 0 || outer->paths == 0;
}

bool net_rule_includes(const struct net_rule *outer, const struct net_rule *inner)
{
	bool methods = outer->methods == 0 || (inner->methods != 0 && (inner->methods & ~outer->methods) == 0);
	/* A rule with an address needs no is_private: it names a private address itself. */
	bool is_private = !inner->is_private || outer->is_private || inner->host_kind == NET_HOST_ADDRESS;

	return methods && is_private && rule_includes_host(outer, inner) && rule_includes_port(outer, inner) &&
	       rule_includes_paths(outer, inner);
}

/* --- what a program asks for --- */

bool net_rule_matches(const struct net_rule *rule, const struct net_target *target)
{
	return rule_matches_host(rule, target->host) && rule_matches_port(rule, target->port, target->scheme);
}

const struct net_rule *net_rules_find(const struct net_rules *rules, const struct net_target *target)
{
	for (unsigned i = 0; i < rules->n; i++)
		if (net_rule_matches(&rules->rule[i], target))
			return &rules->rule[i];
	return NULL;
}

bool net_rules_match_host(const struct net_rules *rules, const char *host)
{
	for (unsigned i = 0; i < rules->n; i++)
		if (rule_matches_host(&rules->rule[i], host))
			return true;
	return false;
}

bool net_rules_allow_private_address(const struct net_rules *rules, const struct net_target *target)
{
	for (unsigned i = 0; i < rules->n; i++)
		if (rules->rule[i].is_private && net_rule_matches(&rules->rule[i], target))
			return true;
	return false;
}

bool net_rules_allow_request(const struct net_rules *rules, const struct net_target *target, enum net_method method, const char *path,
			     bool is_private)
{
	for (const struct net_rule *r = rules->rule; method && r < rules->rule + rules->n; r++)
		if ((r->is_private || !is_private) && (r->methods == 0 || r->methods & method) && net_rule_matches(r, target) &&
		    rule_allows_path(r, path))
			return true;
	return false;
}

bool net_rules_need_inspection(const struct net_rules *rules, const struct net_target *target)
{
	for (const struct net_rule *r = rules->rule; r < rules->rule + rules->n; r++)
		if (net_rule_matches(r, target) && (r->methods || r->paths))
			return true;
	return false;
}

static void add_port(uint16_t port, uint16_t ports[NET_PORTS_MAX], uint32_t *n)
{
	for (unsigned i = 0; i < *n; i++)
		if (ports[i] == port)
			return;
	if (*n < NET_PORTS_MAX)
		ports[(*n)++] = port;
}

void net_rules_collect_ports(const struct net_rules *rules, uint16_t ports[NET_PORTS_MAX], uint32_t *n)
{
	if (rules->n == 0)
		return;
	add_port(HTTP_PORT, ports, n);
	add_port(HTTPS_PORT, ports, n);
	for (unsigned i = 0; i < rules->n; i++)
		if (rules->rule[i].port)
			add_port(rules->rule[i].port, ports, n);
}
