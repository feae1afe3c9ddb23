/*
 * place.h - where brig keeps its things.
 *
 *   profiles  $BRIG_PROFILES, over (not root:) $XDG_CONFIG_HOME/brig/profiles, over
 *             /etc/brig/profiles and the presets, or those of the build tree when run
 *             from there; $BRIG_PRESETS is in place of all but the first
 *   store     $BRIG_STORE, else build/store, else /var/lib/brig/rootfs
 *             (not root: $XDG_DATA_HOME/brig/rootfs over these, but where the
 *             build tree is one's own, or that place is closed to the caller)
 *   runtime   /run/brig (not root: /run/user/UID/brig, else /tmp/brig-UID, or
 *             .brig in the home that /etc/passwd tells when that one is another user's)
 *   brigd     beside this program, else where it was installed
 *
 * A relative BRIG_PROFILES, BRIG_PRESETS or BRIG_STORE is refused. The texts live as long as the struct. Nothing is created here.
 */
#pragma once
#include "err.h"

#define PLACE_MAX 1024

/* Directories of profiles and policies, in the order of search. */
enum { PROFILES_NAMED, PROFILES_OWN, PROFILES_HOST, PROFILES_PRESET, PROFILES_PLACES };

struct credentials;

struct places {
	char profiles[PROFILES_PLACES][PLACE_MAX]; /* each may be empty; a user's own is not there for root, nor for a service of the host */
	char recipes[PLACE_MAX];
	char store[2][PLACE_MAX];    /* searched in this order, the second may be empty; brig rootfs writes into the first */
	char runtime[PLACE_MAX];
	char libexec[PLACE_MAX];     /* where our other binaries are */
	char guest[PLACE_MAX];       /* what runs programs inside a jail: files that go into each rootfs */
	char brigd[PLACE_MAX];       /* the program; nobody looked whether it is there */
	const struct credentials *credentials; /* of a service's reader (credentials.h), which outlives this; else NULL */
	bool apart;                  /* profiles or store are not the host's: a service of the host would use others */
};

/*
 * A service that root started by hand sees the host's places below here (view.h), each under its own path. In texts
 * they have the names that people know.
 */
#define PLACE_VIEW "/run/brig/view"
/* Why the host's service did not start (failure.h); a user's own has the file in its runtime directory. */
#define PLACE_FAILURE "/run/brig/failure"
#define PLACE_CONFIG  "/etc/brig/brig.json"
void places_name_as_known(char *text);

/* Our own path; without /proc the one that we were started by. False: nobody knows it. */
must_use bool place_of_program(char path[PLACE_MAX]);

must_use int places_find(struct places *ret, struct err *e);
