/*
 * paths.h - where brig keeps its things.
 *
 *   profiles  searched in this order: $BRIG_PROFILES; $XDG_CONFIG_HOME/brig/profiles,
 *             unless the caller is root; /etc/brig/profiles; the installed presets. In a
 *             tree its own presets replace the last two. $BRIG_PRESETS replaces
 *             all but the first
 *   store     $BRIG_STORE alone, if it is set. Else store/ of the tree, else
 *             /var/lib/brig/rootfs; a user who is not root searches $XDG_DATA_HOME/brig/rootfs
 *             first, unless the tree belongs to that user, or the directory is
 *             closed to that user
 *   runtime   root: /run/brig. Other users: /run/user/UID/brig, else /tmp/brig-UID, or,
 *             when that belongs to another user, .brig in the home of /etc/passwd
 *   brigd     in the directory of this program, else where it was installed
 *
 * A tree is a directory with the file "brig.mark", the programs in bin/, and profiles, recipes, guest and store beside it: build/ of a clone, or
 * an unpacked tarball. It may be anywhere; a program finds its own by /proc/self/exe.
 *
 * A relative BRIG_PROFILES, BRIG_PRESETS or BRIG_STORE is refused. Nothing is created here.
 */
#pragma once
#include "err.h"

#define PATH_SIZE 1024
#define TREE_MARK "brig.mark"

/* Directories of profiles and policies, in the order of search. */
enum { PROFILES_NAMED, PROFILES_OWN, PROFILES_HOST, PROFILES_PRESET, PROFILES_PLACES };

struct credentials;

struct brig_paths {
	char profiles[PROFILES_PLACES][PATH_SIZE]; /* each may be empty; PROFILES_OWN is, for root and for a service of the host */
	char recipes[PATH_SIZE];
	char store[2][PATH_SIZE];    /* in the order of search; the second may be empty; brig rootfs writes into the first */
	char runtime[PATH_SIZE];
	char libexec[PATH_SIZE];     /* the directory of brig's other binaries */
	char guest[PATH_SIZE];       /* the directory of the files that run programs inside a jail, and go into each rootfs */
	char brigd[PATH_SIZE];       /* path of the program; it may not exist */
	const struct credentials *credentials; /* borrowed; set in a service's reader only (credentials.h), else NULL */
	bool apart;                  /* profiles or store are not those of the host, which a service of the host would use */
};

/*
 * A service that root started by hand sees the host's directories below PLACE_VIEW (view.h), each under its own path.
 * brig_paths_unmap_view() gives paths in a text for people their usual names again, in place.
 */
#define PLACE_VIEW "/run/brig/view"
/* Why the host's service did not start (failure.h); a user's own has the file in its runtime directory. */
#define PLACE_FAILURE "/run/brig/failure"
#define PLACE_CONFIG  "/etc/brig/brig.json"
void brig_paths_unmap_view(char *text);

/* The path of this program; without /proc, the one that it was started by. False: it is unknown. */
must_use bool find_path_of_program(char path[PATH_SIZE]);

must_use int brig_paths_find(struct brig_paths *ret, struct err *e);
