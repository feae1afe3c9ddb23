/*
 * trust.h - whose files this process obeys.
 *
 * A file that decides what runs, and where, must belong to root or to this process's user, and neither its group nor others
 * may write to it. This is the one check for all of them: configuration, profiles and policies, recipes, rootfs, servers, tokens,
 * secrets, .env.
 */
#pragma once
#include "err.h"

struct bytes;
struct stat;
bool trust_stat_is_safe(const struct stat *st);
/*
 * As above; the message names the owner or the mode, and what to type. path is for the message only. The owner of
 * the running program is trusted as well, because that account can change the program itself; likewise the program's group, if it may write
 * to the program, as in a tree that was built with umask 002.
 */
must_use int trust_check(const struct stat *st, const char *path, struct err *e);
/*
 * The same for the folder in which path is, whose owner may put another file there: root may be led to read what is root's, and meant for
 * something else. Others may write to it if it is sticky, as /tmp is.
 */
must_use int trust_check_folder_of(const char *path, struct err *e);

/*
 * Reads a file that decides what a jail may do or what is started: a regular file that is trusted, in a folder that is. When it does not
 * exist, e->errnum is ENOENT, so that the caller can try the next directory.
 */
must_use int trust_read(const char *path, size_t max, struct bytes *ret, struct err *e);
/* The same for a token: others must not be able to read it either. */
must_use int trust_read_secret(const char *path, size_t max, struct bytes *ret, struct err *e);
