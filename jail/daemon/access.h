/*
 * access.h - who may use this service, and what of it.
 *
 * Rows with numbers, made of the configuration before anybody is served. The
 * first row that fits counts; whom none fits is refused. Root is always let in:
 * root could change the rows, and needs stats, top and kill when something is wrong.
 */
#pragma once
#include "config.h"
#include "peer.h"
#include "quota.h"

struct access_rule {
	bool                is_group;
	uint32_t            id;
	const json_t       *profiles; /* the configuration's; NULL: every one */
	struct quota_limits quota;
};

struct access {
	struct access_rule rule[CONFIG_ACCESS_MAX + 1];
	size_t             n;
};

/* A name that this host does not know is an error: a rule that was meant to bind must not be left out. */
must_use int access_build(struct access *ret, const struct config *c, struct err *e);

/* Without rows in a file: root and the group brig. */
void access_preset(struct access *ret);
/* One user and nobody else: of a plain user's own service, and of a private door. */
void access_own(struct access *ret, uid_t own);

const struct access_rule *access_find(const struct access *a, const struct peer *p, const struct peer_groups *groups);
bool                      access_allows(const struct access_rule *r, const char *profile);

/* Rows with ids, for a process that cannot look up names; the lists of profiles are those of the configuration. */
json_t      *access_to_json(const struct access *a);
must_use int access_from_json(struct access *ret, const struct config *c, const json_t *rows, struct err *e);
