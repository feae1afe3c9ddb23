/*
 * permission.h - may this run reach that?
 *
 * A run may reach what its own rules match, the profile's allow or ceiling matches, and deny does not match. Only these
 * functions decide; they are pure.
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
	bool            is_private; /* by some rule of the profile the name may lead to addresses that are not public */
};

/*
 * target.scheme ANY: the scheme is not known yet. The answer is NONE when some scheme could be allowed; deny counts
 * only when it matches every scheme that is. Ask again when the scheme is known.
 */
struct permission permission_find(const struct policy *policy, const struct net_target *target);
/* A tcp:// rule lets every protocol pass here: nothing is looked at. */
bool permission_is_raw_tcp(const struct policy *policy, const char *host, uint16_t port);
/* Requests have to be read: rules for the target name methods or paths, or a secret belongs to it. */
bool permission_needs_inspection(const struct policy *policy, const struct net_target *target);
/*
 * NONE: it may be sent. REQUEST: no rule allows method and path. NOT_PUBLIC: the name led to an address that is not
 * public (is_private), and the rules that allow method and path do not allow that.
 */
enum net_reason permission_judge_request(const struct policy *policy, const struct net_target *target,
					 enum net_method method, const char *path, bool is_private);
/* The resolver answers: the name is allowed at some port. deny depends on the port, so it is asked when the program
 * connects. */
bool permission_knows_host(const struct policy *policy, const char *host);
