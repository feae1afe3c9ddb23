/*
 * config.h - brig.json: what a service may hand out, and to whom.
 *
 * Pure: bytes in, struct out; names of users and groups become ids in access.h.
 * Texts are borrowed from `source`. No file is the same as an empty object.
 */
#pragma once
#include "field_json.h"

enum { CONFIG_MAX = 64 * 1024, CONFIG_ACCESS_MAX = 64, CONFIG_CONTEXTS_MAX = 16 };

struct config_ids {
	uint64_t base, count; /* 0, 0: as brig(1) finds them */
};

struct config_audit {
	const char *file; /* NULL: none */
	uint64_t    max_bytes, keep;
};

/* One row of "access": who, and what he may have. */
struct config_access {
	const char   *user, *group; /* one of the three is said */
	uint64_t      uid;          /* CONFIG_NO_UID: not said */
	const json_t *profiles;     /* NULL: every one */
	uint64_t      runs, memory_bytes, runs_per_minute, sessions; /* 0: without bound */
	uint64_t      contexts;     /* of one session */
};
#define CONFIG_NO_UID UINT64_MAX

struct config {
	struct config_ids    ids;
	uint64_t             ready, runs, memory_bytes, spare_memory_bytes, freeze_ms;
	bool                 private_runs;
	struct config_audit  audit;
	const json_t        *access_rows; /* NULL: not said */
	struct config_access access[CONFIG_ACCESS_MAX];
	size_t               access_len;
	json_t              *source;
};

extern const struct field config_fields[];
extern const struct field config_access_fields[]; /* presets are those of who is not in a file at all, too */

must_use int config_parse(struct config *ret, const void *bytes, size_t len, struct err *e);
/* The file must be root's, or our own user's. name: what messages call it, where path leads to a copy. */
must_use int config_load(struct config *ret, const char *path, const char *name, struct err *e);
/* A second one, with the same source. */
struct config config_hold(const struct config *c);
void         config_done(struct config *c);
/* Settings that differ and that a service has for life, as "ids, audit"; NULL when there are none. */
const char  *config_differs_for_life(const struct config *is, const struct config *wish);
#define scoped_config scoped(config_done) struct config
