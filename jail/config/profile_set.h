/*
 * profile_set.h - the profiles that the server serves, read and checked.
 *
 * A service's reader reads all of them, at the start and at each reload: what
 * changes on disk in between does not reach a confined server. A private server reads
 * the profile that a request names.
 */
#pragma once
#include "code_digest.h"
#include "net_config.h"
#include "paths.h"
#include "policy_bundle.h"
#include "profile.h"

enum { PROFILE_SET_MAX = 255 };

struct served_profile {
	char                 name[64];
	unsigned             holders;
	unsigned             index; /* the backend's number for it */
	struct profile       profile;
	struct policy_bundle policy;
	bool                 is_private; /* of a private server: its runs may do what its user may do */
	char                 filter_sha256[CODE_DIGEST_HEX + 1]; /* of a service; else "" */
	json_t              *packages; /* of a service: the packages of its rootfs when the profile was read; else NULL */
	struct net_config    net;       /* in the reader only */
	int                  filter_fd; /* in the reader only: the compiled policy, a sealed array of struct sock_filter; else -1 */
};

struct profile_set {
	const struct brig_paths *places;
	bool                     on_demand;
	struct served_profile   *item[PROFILE_SET_MAX];
	size_t                   n;
};

typedef void profile_left_out_fn(void *context, const char *name, const struct err *why);

void profile_set_init(struct profile_set *ret, const struct brig_paths *places, bool on_demand);
/*
 * Loads all profiles. One that cannot be read, whose policy cannot be compiled, or whose secrets are missing, is passed
 * to left_out and skipped. Fails when it cannot be known which there are.
 */
must_use int profile_set_load(struct profile_set *s, profile_left_out_fn *left_out, void *context, struct err *e);
void profile_set_done(struct profile_set *s);

/* Fails if the policy lets no program use a network. p must come from a file: the profiles that the reader sends have no policy. */
must_use int profile_check_network_filter(const struct served_profile *p, const struct brig_paths *places,
					  struct err *e);

/* NULL with *e when there is no such profile, or it cannot be used. */
const struct served_profile *profile_set_find(struct profile_set *s, const char *name, struct err *e);

/* Adds a profile that the reader has loaded, from the JSON that rules.c writes. It has no policy: the monitor has the filter. */
must_use int profile_set_add_from_json(struct profile_set *s, const json_t *row, struct err *e);

/* Holders are counted: a run may outlive the set that its profile was in. */
const struct served_profile *profile_acquire(const struct served_profile *p);
void                         profile_release(const struct served_profile *p);
