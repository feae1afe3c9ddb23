/*
 * config.h - brig.json: which users may have what of a service.
 *
 * Pure: bytes in, struct out; names of users and groups become ids in access.h.
 * Texts are borrowed from `source`. No file is the same as an empty object.
 */
#pragma once
#include "field_json.h"

enum { CONFIG_MAX = 64 * 1024, CONFIG_ACCESS_MAX = 64, CONFIG_CONTEXTS_MAX = 16 };

struct config_ids {
	uint64_t base, count; /* 0, 0: the end of root's own range, see brigd(8) */
};

struct config_audit {
	const char *file; /* NULL: none */
	uint64_t    max_bytes, keep;
};

/* One row of "access": a user or a group, and what it may use. */
struct config_access {
	const char   *user, *group; /* exactly one of user, group and uid is set */
	uint64_t      uid;          /* CONFIG_NO_UID: not set */
	const json_t *profiles;     /* NULL: all */
	uint64_t      runs, memory_bytes, runs_per_minute, sessions; /* 0: without bound */
	uint64_t      contexts;     /* of one session */
};
#define CONFIG_NO_UID UINT64_MAX

struct config {
	struct config_ids    ids;
	uint64_t             ready, runs, memory_bytes, spare_memory_bytes, freeze_ms;
	bool                 private_runs;
	struct config_audit  audit;
	const json_t        *access_rows; /* NULL: not set */
	struct config_access access[CONFIG_ACCESS_MAX];
	size_t               access_len;
	json_t              *source;
};

extern const struct field config_fields[];
extern const struct field config_access_fields[]; /* its presets also hold for rules that come from no file */

must_use int config_parse(struct config *ret, const void *bytes, size_t len, struct err *e);
/* The file must belong to root or to the caller's user. name: what errors call it, since path may lead to a copy. */
must_use int config_load(struct config *ret, const char *path, const char *name, struct err *e);
/* A copy, with a reference to the same source. */
struct config config_acquire(const struct config *c);
void         config_done(struct config *c);
/* Settings that differ and take effect only at the next start, as "ids, audit"; NULL: none. */
const char  *config_changes_needing_restart(const struct config *is, const struct config *wish);
#define scoped_config scoped(config_done) struct config
