/*
 * access.h - which users may use this service, and how much of it.
 *
 * The rules have numeric ids. They are built from the configuration before the first
 * client is served, and at each reload. The first rule that matches a client counts; a
 * client that no rule matches is refused. Root is always admitted, except by access_build_for_user():
 * it could change the rules anyway, and needs stats, top and kill when something is wrong.
 */
#pragma once
#include "config.h"
#include "peer.h"
#include "quota.h"

struct access_rule {
	bool                is_group;
	uint32_t            id;
	const json_t       *profiles; /* borrowed from the configuration; NULL: all */
	struct quota_limits quota;
};

struct access {
	struct access_rule rule[CONFIG_ACCESS_MAX + 1];
	size_t             n;
};

/* A user or group that this host does not know is an error: no rule may be skipped silently. */
must_use int access_build(struct access *ret, const struct config *c, struct err *e);

/* The rules of a service whose configuration has none: root and the group brig. */
void access_build_preset(struct access *ret);
/* The rules of a plain user's own service, and of a private server: that user alone. */
void access_build_for_user(struct access *ret, uid_t own);

const struct access_rule *access_find(const struct access *a, const struct peer *p, const struct peer_groups *groups);
bool                      access_allows(const struct access_rule *r, const char *profile);

/* The rules with ids, for a process that cannot look up names. Lists of profiles are not in the text; they come from c. */
json_t      *access_to_json(const struct access *a);
must_use int access_from_json(struct access *ret, const struct config *c, const json_t *rows, struct err *e);
