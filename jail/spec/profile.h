/*
 * profile.h - what a profile file says: rootfs, limits, ceilings, policy, mounts.
 *
 * Pure: bytes in, struct out. Reading the file is jail/cli's (later the door's)
 * business. All strings are borrowed from `source`, which the profile owns;
 * profile_done() frees it.
 */
#pragma once
#include "limits.h"
#include "net_policy.h"
#include "profile_warm.h"

enum profile_require { REQUIRE_MODE, REQUIRE_ALL };

struct profile {
	const char     *name;        /* borrowed from the caller */
	const char     *description; /* one line for brig profile list */
	const char     *rootfs;      /* a name in the store */
	const char     *policy;      /* a file beside the profiles: NAME.policy */
	const json_t   *policy_extend; /* more policy lines; they extend, they cannot undo the floor */
	bool            workspace_exec;
	const json_t   *modules;     /* what the static check lets a program import; NULL: anything */
	const json_t   *calls;       /* what it warns of */
	unsigned        require;     /* enum profile_require */
	const json_t   *allow_missing; /* limits that may be missing though they were asked for; NULL: none */
	unsigned        warm;        /* enum profile_warm */
	uint64_t        zygote_runs, zygote_ms; /* for so many, or for so long, the same one */
	const json_t   *preload;     /* what its zygote imports; NULL: nothing */
	uint64_t        ready;       /* cells that a service keeps ready */
	struct limits   limits, ceilings;
	struct net_settings network;
	struct net_policy *net;      /* owned: what these mean; NULL: nothing is said */
	json_t         *source;
};

enum { PRELOAD_BYTES_MAX = 1024 }; /* of all names with a byte for each */

#define PROFILE_MAX (64 * 1024)
extern const struct field profile_fields[];

const char  *profile_warm_name(unsigned warm);
must_use int profile_parse(struct profile *ret, const char *name, const void *bytes, size_t len, struct err *e);
void         profile_done(struct profile *p);
#define scoped_profile scoped(profile_done) struct profile
