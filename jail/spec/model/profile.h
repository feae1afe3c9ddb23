/*
 * profile.h - the settings of a profile: rootfs, limits, ceilings, policy, mounts.
 *
 * Pure: bytes in, struct out; the caller reads the file. All strings but `name`
 * are borrowed from `source`, which the profile owns; profile_done() frees it.
 */
#pragma once
#include "limits.h"
#include "net_policy.h"
#include "profile_warm.h"

/* Where packages come from that a run asks for (decision 0190). Texts are borrowed from the profile. */
struct package_settings {
	const char   *index;      /* the address of a simple index, or NULL */
	const json_t *hosts;      /* further hosts that serve its files: rules as in network, or NULL */
	const char   *find_links; /* an absolute path of a directory of wheels, or NULL */
};

enum profile_require { REQUIRE_MODE, REQUIRE_ALL };

struct profile {
	const char     *name;        /* borrowed from the caller */
	const char     *description; /* one line for brig profile list */
	const char     *rootfs;      /* a name in the store */
	const char     *policy;      /* the name of a file in a directory of profiles: NAME.policy */
	const json_t   *policy_extend; /* statements added to the policy; they cannot allow what the floor forbids; NULL: none */
	bool            workspace_exec;
	const json_t   *modules;     /* modules that the static check accepts; NULL: any */
	const json_t   *calls;       /* calls that the static check warns about */
	unsigned        require;     /* enum profile_require */
	const json_t   *allow_missing; /* limits that need not be enforced even if the request names them; NULL: none */
	unsigned        warm;        /* enum profile_warm */
	uint64_t        zygote_runs, zygote_ms; /* a zygote is replaced after so many runs, or after so long */
	const json_t   *preload;     /* modules that its zygote imports; NULL: none */
	uint64_t        ready;       /* cells that a service keeps ready */
	const char     *extends; /* NULL in every profile that was read: profile_file.h has put both together */
	struct limits   limits, ceilings;
	struct net_settings network;
	struct package_settings packages;
	bool            has_packages; /* the key is there: without it, a private run uses PACKAGES_INDEX and a service nothing */
	struct net_policy *net;      /* owned: the settings of `network`, compiled; NULL: none are set */
	json_t         *source;
};

#define PACKAGES_INDEX "https://pypi.org/simple/"

enum { PRELOAD_BYTES_MAX = 1024 }; /* of all names, each with a separator */

#define PROFILE_MAX (64 * 1024)
extern const struct field profile_fields[];

const char  *profile_warm_name(unsigned warm);
must_use int profile_parse(struct profile *ret, const char *name, const void *bytes, size_t len, struct err *e);
void         profile_done(struct profile *p);
#define scoped_profile scoped(profile_done) struct profile
