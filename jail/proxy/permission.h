/*
 * permission.h - may this run reach that?
 *
 * What the run's own rules and one of the profile's (allow or ceiling) match, and none of deny. The one place that
 * decides; pure.
 */
#pragma once
#include "net_report.h"
#include "proxy_protocol.h"

struct policy {
	const struct proxy_config *config;
	const struct net_rules    *rules; /* of the run */
};

struct permission {
	enum net_reason reason;     /* NONE: it may */
	bool            is_private; /* its name may lead to addresses that are not public */
	bool            is_literal; /* the address itself was named by a rule: it is not judged again */
};

/*
 * target.scheme ANY: it is not known yet, and some scheme could be allowed; deny is not asked, as it may name another
 * scheme. Ask again when it is.
 */
struct permission permission_find(const struct policy *policy, const struct net_target *target, bool is_address);
/* Every protocol may pass: nothing is looked at. */
bool permission_is_raw(const struct policy *policy, const char *host, uint16_t port);
/* Requests have to be read: rules name methods or paths, or a secret belongs to it. */
bool permission_reads(const struct policy *policy, const struct net_target *target);
bool permission_of_request(const struct policy *policy, const struct net_target *target, enum net_method method,
			   const char *path);
/* The name is worth an answer of the resolver. What deny says depends on the port: connecting tells. */
bool permission_knows(const struct policy *policy, const char *host);
