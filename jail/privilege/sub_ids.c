#define _GNU_SOURCE
#include "sub_ids.h"

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A missing file is an empty one; a file that cannot be read is an error: it may give ids to other users. */
static int read_sub_id_file(const char *path, struct bytes *ret, struct err *e)
{
	if (file_read(AT_FDCWD, path, MIB, ret, e) == 0)
		return 0;
	if (e->errnum == ENOENT) {
		ret->data = strdup("");
		return ret->data ? 0 : err_set(e, ERR_LIMIT, "out of memory");
	}
	return err_wrap(e, "id ranges");
}

static int read_subuid_and_subgid(struct bytes *uids, struct bytes *gids, struct err *e)
{
	return read_sub_id_file("/etc/subuid", uids, e) < 0 ? -1 : read_sub_id_file("/etc/subgid", gids, e);
}

int sub_ids_choose_for_root(struct id_range *ret, struct err *e)
{
	scoped_bytes uids = { 0 }, gids = { 0 };

	return read_subuid_and_subgid(&uids, &gids, e) < 0 ? -1 : id_range_choose(uids.data, gids.data, ret, e);
}

int sub_ids_read_for_user(struct id_range *uids, struct id_range *gids, struct err *e)
{
	scoped_bytes   uid_text = { 0 }, gid_text = { 0 };
	struct passwd *account = getpwuid(getuid());
	struct id_user user    = { .name = account ? account->pw_name : NULL, .uid = getuid(), .gid = getgid() };

	return read_subuid_and_subgid(&uid_text, &gid_text, e) < 0 ? -1 : id_range_of_user(uid_text.data, gid_text.data, &user, uids, gids, e);
}

char *sub_ids_format_advice(char *buf, size_t len)
{
	scoped_bytes   uids = { 0 }, gids = { 0 };
	struct passwd *account = getpwuid(getuid());
	struct id_range free   = { 0 };
	struct err     e;

	if (read_subuid_and_subgid(&uids, &gids, &e) < 0 || id_range_find_free(uids.data, gids.data, &free) < 0)
		snprintf(buf, len, "as root: give this user a line of its own in /etc/subuid and /etc/subgid, see subuid(5)");
	else
		snprintf(buf, len, "as root: usermod --add-subuids %u-%u --add-subgids %u-%u %.32s", free.base, free.base + free.count - 1,
			 free.base, free.base + free.count - 1, account ? account->pw_name : "USER");
	return buf;
}
