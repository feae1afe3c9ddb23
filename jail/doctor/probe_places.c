#define _GNU_SOURCE
#include "probe_kit.h"

#include "fd.h"
#include "file.h"
#include "trust.h"
#include "id_range.h"
#include "paths.h"
#include "profile.h"
#include "profile_file.h"
#include "proxy_protocol.h"
#include "store.h"
#include "sub_ids.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool find_brig_paths(struct probe *p, struct brig_paths *ret)
{
	struct err e;

	return brig_paths_find(ret, &e) == 0 ||
	       report_missing(p, e.text, "give BRIG_PROFILES, BRIG_PRESETS, BRIG_STORE, XDG_CONFIG_HOME, XDG_DATA_HOME and HOME short, "
	                                "absolute paths");
}

/* Reads the default profile from the first directory that has it. */
static int read_default_profile(const struct brig_paths *at, struct bytes *ret, char *path, size_t len, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(at->profiles); i++) {
		if (!at->profiles[i][0])
			continue;
		snprintf(path, len, "%s/" DEFAULT_PROFILE ".json", at->profiles[i]);
		if (trust_read(path, PROFILE_MAX, ret, e) == 0)
			return 0;
		if (e->errnum != ENOENT && e->errnum != ENOTDIR)
			break;
	}
	return -1;
}

/* Fills *name with the profile's rootfs. */
static bool load_default_profile(struct probe *p, char *name, size_t namelen, char *path, size_t len)
{
	struct brig_paths at;
	struct err        e = { 0 };
	scoped_bytes      text = { 0 };
	scoped_profile    profile = { 0 };
	char              cause[256];

	if (!find_brig_paths(p, &at))
		return false;
	if (profile_folders_check(&at, &e) < 0)
		return report_missing(p, e.text, "no run starts with such a directory: give it to its user alone, or remove it");
	if (read_default_profile(&at, &text, path, len, &e) < 0)
		return report_missing(p, e.text, "install brig's profiles in /etc/brig/profiles, or set BRIG_PROFILES");
	if (profile_parse(&profile, DEFAULT_PROFILE, text.data, text.len, &e) == 0) {
		snprintf(name, namelen, "%s", profile.rootfs);
		return true;
	}
	snprintf(cause, sizeof cause, "%.120s: %.120s", path, e.text);
	return report_missing(p, cause, "brig profile check " DEFAULT_PROFILE " names the line; correct it or remove the file");
}

bool probe_profile(struct probe *p)
{
	char rootfs[64], path[PATH_SIZE + 32];

	return load_default_profile(p, rootfs, sizeof rootfs, path, sizeof path) && report_detail(p, "%.140s", path);
}

/* Opens the rootfs as brig run does, so the row gives the error that a run would give. */
bool probe_rootfs(struct probe *p)
{
	struct finding    kept = p->finding;
	struct brig_paths at;
	scoped_store_tree tree = STORE_TREE_NONE;
	struct err        e;
	char              name[64] = DEFAULT_PROFILE, path[PATH_SIZE + 128], fix[128];

	if (!find_brig_paths(p, &at))
		return false;
	if (!load_default_profile(p, name, sizeof name, path, sizeof path))
		p->finding = kept; /* the row profile reports it */
	if (store_open_tree_in_first((const char *const[]){ at.store[0], at.store[1] }, name, &tree, &e) < 0) {
		if (e.errnum == EACCES)
			snprintf(fix, sizeof fix, "let this user read the store (namei -l shows where it ends), or BRIG_STORE=DIR");
		else
			snprintf(fix, sizeof fix, "brig-rootfs build %s", name);
		return report_missing(p, e.text, fix);
	}
	if (faccessat(tree.tree_fd, "usr", F_OK, 0) < 0) {
		snprintf(fix, sizeof fix, "brig-rootfs build --force %s", name);
		return check_sys_result(p, -1, "%.200s/usr", tree.path) || report_better_fix(p, fix);
	}
	return report_detail(p, "%.12s in %.120s", tree.digest, at.store[!begins_with(tree.path, at.store[0])]);
}

/* Looks where the server does: beside brig, then in the directory of installed programs. */
static bool check_proxy_program(struct probe *p, const struct brig_paths *at)
{
	char path[PATH_SIZE + 16], cause[PATH_SIZE + 64];

	snprintf(path, sizeof path, "%s/" PROXY_PROGRAM, at->libexec);
	if (access(path, X_OK) == 0)
		return true;
	snprintf(path, sizeof path, "%s/" PROXY_PROGRAM, BRIG_LIBEXECDIR);
	if (access(path, X_OK) == 0)
		return true;
	snprintf(cause, sizeof cause, "brig-proxy: %.120s: %s", path, strerror(errno));
	return report_degraded(p, cause, "install brig anew: without it, runs with --net and services do not begin");
}

static int count_resolvers(void)
{
	FILE *file = fopen("/etc/resolv.conf", "re");
	char  line[256];
	int   n = 0;

	while (file && fgets(line, sizeof line, file))
		n += begins_with(line, "nameserver ") || begins_with(line, "nameserver\t");
	if (file)
		fclose(file);
	return n;
}

/* Counts resolvers without asking one: brig doctor sends nothing to other hosts. */
bool probe_network(struct probe *p)
{
	struct brig_paths at;
	int               resolvers = count_resolvers();

	if (!find_brig_paths(p, &at) || !check_proxy_program(p, &at))
		return false;
	if (resolvers > 0)
		return report_detail(p, "brig-proxy is there, and /etc/resolv.conf names %d resolver%s", resolvers,
				     resolvers == 1 ? "" : "s");
	return report_degraded(p, "/etc/resolv.conf names no resolver: of the hosts that --net names, only addresses and those of "
	                         "/etc/hosts are found", "write nameserver ADDRESS into /etc/resolv.conf");
}

static bool check_private_dir(struct probe *p, const char *dir)
{
	struct stat st;
	char        cause[256], fix[256];

	if (!check_sys_result(p, lstat(dir, &st), "%s", dir))
		return false;
	if (S_ISDIR(st.st_mode) && st.st_uid == p->at->uid && !(st.st_mode & 022) && access(dir, W_OK | X_OK) == 0)
		return report_detail(p, "%.140s", dir);
	snprintf(cause, sizeof cause, "%.160s is not a directory of uid %u alone: other users could take brig's locks", dir, p->at->uid);
	snprintf(fix, sizeof fix, "remove it, or: chown %u %.140s && chmod 0700 it", p->at->uid, dir);
	return report_missing(p, cause, fix);
}

/* The directory must be root's. The monitor writes one file in it, "slots", whose locks it shares with root's own runs. */
static bool check_monitor_dir(struct probe *p, const char *dir)
{
	static const char remake[] = "systemd-tmpfiles --create brig.conf";
	struct stat       st;
	char              cause[160];
	scoped_fd         slots = -1;

	if (lstat(dir, &st) < 0)
		return check_sys_result(p, -1, "%s", dir) || report_better_fix(p, remake);
	if (!S_ISDIR(st.st_mode) || st.st_uid != 0 || st.st_mode & 022) {
		snprintf(cause, sizeof cause, "%s is not a directory of root alone: other users could take brig's locks", dir);
		return report_missing(p, cause, remake);
	}
	snprintf(cause, sizeof cause, "%s/slots", dir);
	slots = open(cause, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (slots < 0)
		return report_refused(p, (struct refusal){ .errnum = errno, .on_file = true }, "%s", cause) || report_better_fix(p, remake);
	return report_detail(p, "%s", cause);
}

/* If the directory does not exist, it is made and removed again. */
bool probe_runtime_dir(struct probe *p)
{
	struct brig_paths at;

	if (p->at->is_monitor)
		return check_monitor_dir(p, "/run/brig");
	if (!find_brig_paths(p, &at))
		return false;
	if (mkdir(at.runtime, 0700) == 0)
		return check_sys_result(p, rmdir(at.runtime), "rmdir %s", at.runtime) && report_detail(p, "%.120s can be made", at.runtime);
	if (errno == EEXIST)
		return check_private_dir(p, at.runtime);
	return report_refused(p, (struct refusal){ .errnum = errno, .on_file = true }, "mkdir %.160s", at.runtime) ||
	       report_better_fix(p, p->at->is_root ? "make /run writable: mount -t tmpfs -o mode=0755 tmpfs /run" :
	                       "log in so that logind makes /run/user/UID, or make /tmp writable (mode 1777)");
}

/* The host ids that cells of a plain user will have. */
static bool report_ids_of_user(struct probe *p)
{
	struct id_range uids = { 0 }, gids = { 0 };
	struct err      e;

	if (sub_ids_read_for_user(&uids, &gids, &e) < 0) {
		report_degraded(p, e.text, "see id-range: it comes first");
		return report_detail(p, "host uid %u, this user's own, for every cell", p->at->uid);
	}
	return report_detail(p, "host uids %u to %u, gids from %u, %u cells", uids.base, uids.base + uids.count - 1, gids.base,
			     id_range_slots(&uids));
}

bool probe_id_pool(struct probe *p)
{
	if (!p->at->is_root && !p->at->is_monitor)
		return report_ids_of_user(p);
	struct id_range range;
	struct err      e;

	if (sub_ids_choose_for_root(&range, &e) < 0)
		return report_missing(p, e.text, "usermod --add-subuids 1879048192-1879113727 --add-subgids 1879048192-1879113727 brig");
	return report_detail(p, "host ids %u to %u, %u cells", range.base, range.base + range.count - 1, id_range_slots(&range));
}
