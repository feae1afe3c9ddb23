/*
 * mountinfo.h - which part of which file system is mounted where
 *
 * Pure: takes the bytes of /proc/self/mountinfo, whose lines look like this:
 * "36 35 98:0 /root /at rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue"
 */
#pragma once
#include "defs.h"

struct mountinfo {
	unsigned major, minor; /* of the file system; on btrfs stat() reports other numbers for its files */
	char root[1024];   /* the part of the file system that is mounted, "/" for all of it; escapes are undone */
	char at[1024];
	char type[32];
	char options[512]; /* of the file system: a v1 hierarchy names its controllers here */
};

/*
 * Parses the next mount at or after text[*at] and moves *at past it; false at the
 * end. Skips lines that are malformed or too long for the struct.
 */
must_use bool mountinfo_next(const char *text, size_t len, size_t *at, struct mountinfo *ret);

/*
 * Turns a path in the whole file system into a path below a mount of the part
 * `root`: "/a/b" becomes "/b" when root is "/a", and "/a" becomes "". A root of
 * "/" or "" is the whole file system. False, and path unchanged, when it is not
 * below root.
 */
must_use bool mountinfo_strip_root(const char *root, char *path);
