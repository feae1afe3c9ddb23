/* net_policy_read.c - for which hosts brig-proxy terminates TLS. Not in net_policy.c, so that a supervisor links no JSON parser. */
#include "net_policy.h"

#include <stdio.h>
#include <string.h>

static bool rule_needs_inspection(const struct net_rule *r)
{
	return (r->methods || r->paths) && r->scheme != NET_SCHEME_HTTP;
}

static bool rules_need_inspection(const struct net_rules *rules)
{
	for (uint32_t i = 0; i < rules->n; i++)
		if (rule_needs_inspection(&rules->rule[i]))
			return true;
	return false;
}

bool net_policy_needs_inspection(const struct net_policy *p)
{
	return p && (p->secrets || rules_need_inspection(&p->allow) || rules_need_inspection(&p->ceiling));
}

/* Ignores ports, since a certificate is for a name. */
static bool rule_includes_host_on_https(const struct net_rule *rule, const struct net_rule *asked)
{
	struct net_rule outer = *rule, inner = *asked;

	outer.scheme = inner.scheme = NET_SCHEME_HTTPS;
	outer.port = inner.port = 0;
	outer.methods = inner.methods = outer.paths = inner.paths = 0;
	return net_rule_includes(&outer, &inner);
}

static bool rules_inspect_host(const struct net_rules *rules, const struct net_rule *asked)
{
	for (uint32_t i = 0; i < rules->n; i++)
		if (rule_needs_inspection(&rules->rule[i]) && rule_includes_host_on_https(&rules->rule[i], asked))
			return true;
	return false;
}

bool net_policy_can_inspect(const struct net_policy *p, const struct net_rule *rule)
{
	if (!rule_needs_inspection(rule) ||
	    (p && (rules_inspect_host(&p->allow, rule) || rules_inspect_host(&p->ceiling, rule))))
		return true;
	for (uint32_t i = 0; p && i < p->secrets; i++)
		if (rule->host_kind == NET_HOST_NAME && strcmp(p->secret[i].host, rule->host) == 0)
			return true;
	return false;
}

static void add_inspected_host(net_read_host ret[NET_READ_MAX], size_t *n, const char *prefix, const char *host)
{
	snprintf(ret[*n], sizeof ret[*n], "%s%s", prefix, host);
	for (size_t i = 0; i < *n; i++)
		if (strcmp(ret[i], ret[*n]) == 0)
			return;
	++*n;
}

static void add_inspected_hosts(const struct net_rules *rules, net_read_host ret[NET_READ_MAX], size_t *n)
{
	for (uint32_t i = 0; i < rules->n; i++) {
		const struct net_rule *r = &rules->rule[i];

		if (rule_needs_inspection(r))
			add_inspected_host(ret, n, r->host_kind == NET_HOST_BELOW ? "*." :
					   r->host_kind == NET_HOST_PUBLIC ? "*" : "", r->host);
	}
}

size_t net_policy_list_inspected_hosts(const struct net_policy *p, const struct net_rules *asked,
				       net_read_host ret[NET_READ_MAX])
{
	size_t n = 0;

	if (asked)
		add_inspected_hosts(asked, ret, &n);
	if (p) {
		add_inspected_hosts(&p->allow, ret, &n);
		add_inspected_hosts(&p->ceiling, ret, &n);
	}
	for (uint32_t i = 0; p && i < p->secrets; i++)
		add_inspected_host(ret, &n, "", p->secret[i].host);
	return n;
}
