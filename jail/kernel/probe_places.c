#define _GNU_SOURCE
#include "probe_kit.h"

#include "fd.h"
#include "file.h"
#include "id_range.h"
#include "place.h"
#include "profile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_PROFILE "basic"

static bool find_places(struct probe *p, struct places *ret)
{
	struct err e;

	return places_find(ret, &e) == 0 || probe_missing(p, e.text, "give BRIG_PROFILES, BRIG_STORE, XDG_RUNTIME_DIR and HOME short, absolute paths");
}

/* The first of the two directories that has it, as for brig run. */
static int read_profile(const struct places *at, struct bytes *ret, char *path, size_t len, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(at->profiles) && at->profiles[i][0]; i++) {
		snprintf(path, len, "%s/" DEFAULT_PROFILE ".json", at->profiles[i]);
		if (file_read(AT_FDCWD, path, PROFILE_MAX, ret, e) == 0)
			return 0;
		if (e->errnum != ENOENT && e->errnum != ENOTDIR)
			break;
	}
	return -1;
}

/* Fills *name with the profile's rootfs. */
static bool load_profile(struct probe *p, char *name, size_t namelen, char *path, size_t len)
{
	struct places  at;
	struct err     e = { 0 };
	scoped_bytes   text = { 0 };
	scoped_profile profile = { 0 };
	char           cause[256];

	if (!find_places(p, &at))
		return false;
	if (read_profile(&at, &text, path, len, &e) < 0)
		return probe_missing(p, e.text, "install brig's profiles in /etc/brig/profiles, or set BRIG_PROFILES");
	if (profile_parse(&profile, DEFAULT_PROFILE, text.data, text.len, &e) == 0) {
		snprintf(name, namelen, "%s", profile.rootfs);
		return true;
	}
	snprintf(cause, sizeof cause, "%.120s: %.120s", path, e.text);
	return probe_missing(p, cause, "brig profile check " DEFAULT_PROFILE " names the line; mend it or remove the file");
}

bool probe_profile(struct probe *p)
{
	char rootfs[64], path[PLACE_MAX + 32];

	return load_profile(p, rootfs, sizeof rootfs, path, sizeof path) && probe_detail(p, "%.140s", path);
}

bool probe_rootfs(struct probe *p)
{
	struct finding kept = p->finding;
	struct places  at;
	char           name[64] = DEFAULT_PROFILE, path[PLACE_MAX + 128], fix[128];

	if (!find_places(p, &at))
		return false;
	if (!load_profile(p, name, sizeof name, path, sizeof path))
		p->finding = kept; /* has a row of its own */
	snprintf(path, sizeof path, "%s/names/%s/tree", at.store, name);
	scoped_fd tree = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (tree >= 0 && faccessat(tree, "usr", F_OK, 0) == 0)
		return probe_detail(p, "%.140s", path);
	if (errno == EACCES)
		return did(p, -1, "%.200s", path) || probe_advise(p, "let this user read the store (namei -l shows where it ends), or BRIG_STORE=DIR");
	snprintf(fix, sizeof fix, "brig-rootfs build %s", name);
	return did(p, -1, "%.200s%s", path, tree < 0 ? "" : "/usr") || probe_advise(p, fix);
}

static bool is_ours_alone(struct probe *p, const char *dir)
{
	struct stat st;
	char        cause[256], fix[256];

	if (!did(p, lstat(dir, &st), "%s", dir))
		return false;
	if (S_ISDIR(st.st_mode) && st.st_uid == p->at->uid && !(st.st_mode & 022) && access(dir, W_OK | X_OK) == 0)
		return probe_detail(p, "%.140s", dir);
	snprintf(cause, sizeof cause, "%.160s is not a directory of uid %u alone: others could take our locks", dir, p->at->uid);
	snprintf(fix, sizeof fix, "remove it, or: chown %u %.140s && chmod 0700 it", p->at->uid, dir);
	return probe_missing(p, cause, fix);
}

/* Made for a moment when it is not there. */
bool probe_runtime_dir(struct probe *p)
{
	struct places at;

	if (!find_places(p, &at))
		return false;
	if (mkdir(at.runtime, 0700) == 0)
		return did(p, rmdir(at.runtime), "rmdir %s", at.runtime) && probe_detail(p, "%.120s can be made", at.runtime);
	if (errno == EEXIST)
		return is_ours_alone(p, at.runtime);
	return did_refused(p, (struct refusal){ .errnum = errno, .on_file = true }, "mkdir %.160s", at.runtime) ||
	       probe_advise(p, p->at->is_root ? "make /run writable: mount -t tmpfs -o mode=0755 tmpfs /run" :
	                       "set XDG_RUNTIME_DIR to a directory of yours (logind makes /run/user/UID)");
}

static char *read_or_empty(const char *path, struct bytes *into)
{
	struct err ignored;

	return file_read(AT_FDCWD, path, MIB, into, &ignored) == 0 ? into->data : "";
}

bool probe_id_pool(struct probe *p)
{
	scoped_bytes    uids = { 0 }, gids = { 0 };
	struct id_range range;
	struct err      e;

	if (id_range_choose(read_or_empty("/etc/subuid", &uids), read_or_empty("/etc/subgid", &gids), &range, &e) < 0)
		return probe_missing(p, e.text, "usermod --add-subuids 1879048192-1879113727 --add-subgids 1879048192-1879113727 brig");
	return probe_detail(p, "host ids %u to %u, %u cells", range.base, range.base + range.count - 1, id_range_slots(&range));
}

/* Not the host's fault, and not for ever: the row goes when brig run stops asking. */
bool probe_rootless(struct probe *p)
{
	return p->at->is_root ? probe_detail(p, "we are root") :
	                        probe_missing(p, "brig run asks for root for now, whatever this host can do", "sudo brig doctor, sudo brig run");
}
