#include "permission.h"

#include "secret.h"

static bool profile_has_rule_for(const struct policy *policy, const struct net_target *target)
{
	return net_rules_find(&policy->config->allow, target) || net_rules_find(&policy->config->ceiling, target);
}

/* While the scheme is not known: denied when deny matches every scheme that is allowed. */
static bool profile_denies(const struct policy *policy, const struct net_target *target)
{
	static const enum net_scheme schemes[] = { NET_SCHEME_HTTPS, NET_SCHEME_HTTP };
	struct net_target            as        = *target;
	bool                         denied    = false;

	if (target->scheme != NET_SCHEME_ANY)
		return net_rules_find(&policy->config->deny, target) != NULL;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		as.scheme = schemes[i];
		if (!profile_has_rule_for(policy, &as) || !net_rules_find(policy->rules, &as))
			continue;
		if (!net_rules_find(&policy->config->deny, &as))
			return false;
		denied = true;
	}
	return denied && !permission_is_raw_tcp(policy, target->host, target->port);
}

struct permission permission_find(const struct policy *policy, const struct net_target *target)
{
	if (profile_denies(policy, target))
		return (struct permission){ .reason = NET_REASON_DENIED };
	if (!profile_has_rule_for(policy, target) || !net_rules_find(policy->rules, target))
		return (struct permission){ .reason = NET_REASON_NOT_ALLOWED };
	return (struct permission){
		.is_private = net_rules_allow_private_address(&policy->config->allow, target) ||
			      net_rules_allow_private_address(&policy->config->ceiling, target),
	};
}

/* Bytes of any protocol cannot be inspected, so a deny rule of whatever scheme for this host and port counts. */
bool permission_is_raw_tcp(const struct policy *policy, const char *host, uint16_t port)
{
	struct net_target raw = { host, port, NET_SCHEME_TCP }, any = { host, port, NET_SCHEME_ANY };

	return net_rules_find(policy->rules, &raw) && profile_has_rule_for(policy, &raw) &&
	       !net_rules_find(&policy->config->deny, &any);
}

bool permission_needs_inspection(const struct policy *policy, const struct net_target *target)
{
	return net_rules_need_inspection(policy->rules, target) ||
	       net_rules_need_inspection(&policy->config->allow, target) ||
	       net_rules_need_inspection(&policy->config->ceiling, target) ||
	       secret_exists_for_host(policy->config, target->host, target->port);
}

static bool profile_allows_request(const struct policy *policy, const struct net_target *target, enum net_method method,
				   const char *path, bool is_private)
{
	return net_rules_allow_request(&policy->config->allow, target, method, path, is_private) ||
	       net_rules_allow_request(&policy->config->ceiling, target, method, path, is_private);
}

enum net_reason permission_judge_request(const struct policy *policy, const struct net_target *target,
					 enum net_method method, const char *path, bool is_private)
{
	if (!net_rules_allow_request(policy->rules, target, method, path, false) ||
	    !profile_allows_request(policy, target, method, path, false))
		return NET_REASON_REQUEST;
	return is_private && !profile_allows_request(policy, target, method, path, true) ? NET_REASON_NOT_PUBLIC
										 : NET_REASON_NONE;
}

bool permission_knows_host(const struct policy *policy, const char *host)
{
	return net_rules_match_host(policy->rules, host) &&
	       (net_rules_match_host(&policy->config->allow, host) ||
		net_rules_match_host(&policy->config->ceiling, host));
}
