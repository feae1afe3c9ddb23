/*
 * mountinfo.h - which part of which file system is mounted where
 *
 * Pure: takes the bytes of /proc/self/mountinfo, whose lines look like this:
 * "36 35 98:0 /root /at rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue"
 */
#pragma once
#include "defs.h"

struct mountinfo {
	unsigned major, minor; /* of the file system; btrfs says others for the files in it */
	char root[1024];   /* the part of the file system that is mounted, "/" for all of it; escapes are undone */
	char at[1024];
	char type[32];
	char options[512]; /* of the file system: a v1 hierarchy names its controllers here */
};

/*
 * The next mount from text[*at] on, which moves past it; false at the end.
 * Lines that make no sense, or do not fit, are passed over.
 */
must_use bool mountinfo_next(const char *text, size_t len, size_t *at, struct mountinfo *ret);

/*
 * Where a path of the whole file system is below a mount of a part of it: of
 * "/a/b", when "/a" is mounted, "/b" stays. False, and the path as it was, when
 * it is not below; the root of everything is "/" or "", what stays of it is "".
 */
must_use bool mountinfo_strip_root(const char *root, char *path);
