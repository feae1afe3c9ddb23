/* landlock.c - the mount plan's rules a second time, by another mechanism */
#define _GNU_SOURCE
#include "child.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>

/* Rights that change files, by the ABI that brought them. Headers older than the kernel lack the newest names. */
#define FS_REFER    (1ull << 13) /* ABI 2, 5.19 */
#define FS_TRUNCATE (1ull << 14) /* ABI 3, 6.2 */
#define FS_EXECUTE  (1ull << 0)
#define FS_WRITE    (1ull << 1)
#define FS_CHANGES  (0x1ff0ull) /* REMOVE_DIR .. MAKE_SYM: bits 4 to 12 */

#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* ABI 6, 6.12 */
#define SCOPE_SIGNAL        (1ull << 1)

/* No audit records of refusals: of this process, which in a zygote's fork becomes the program, and of nested rulesets. */
#define LOG_SAME_EXEC_OFF  (1u << 0) /* ABI 7, 6.15 */
#define LOG_SUBDOMAINS_OFF (1u << 2)

enum { ABI_LEAST = 2 }; /* ABI 1 refuses every rename across directories */

struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

static uint64_t handled_fs_rights(unsigned abi)
{
	return FS_EXECUTE | FS_WRITE | FS_CHANGES | FS_REFER | (abi >= 3 ? FS_TRUNCATE : 0);
}

int landlock_abi(void)
{
	int abi = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < ABI_LEAST ? 0 : abi;
}

static int allow_access_below(int rules, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = access };
	int                               r;

	attr.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (attr.parent_fd < 0)
		return -errno;
	r = child_sys(landlock_add_rule(rules, LANDLOCK_RULE_PATH_BENEATH, &attr, 0));
	close(attr.parent_fd);
	return r;
}

static int add_landlock_rules(int rules, const struct child_ctx *c)
{
	uint64_t all = handled_fs_rights(c->fork.landlock_abi), change = all & ~FS_EXECUTE;
	const struct {
		const char *path;
		uint64_t    access;
	} rows[] = {
		{ "/usr", FS_EXECUTE },
		{ "/dev", FS_WRITE },
		{ "/dev/shm", change },
		{ "/tmp", change },
		{ "/workspace", c->fork.workspace_exec ? all : change },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r = allow_access_below(rules, rows[i].path, rows[i].access);

		if (r < 0)
			return r;
	}
	return 0;
}

int child_restrict_with_landlock(struct child_ctx *c)
{
	struct ruleset_attr attr = {
		.handled_access_fs = handled_fs_rights(c->fork.landlock_abi),
		.scoped            = c->fork.landlock_abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
	};
	unsigned quiet = c->fork.landlock_abi >= 7 ? LOG_SAME_EXEC_OFF | LOG_SUBDOMAINS_OFF : 0;
	int      rules, r;

	if (c->fork.landlock_abi == 0)
		return 0;
	rules = landlock_create_ruleset((const void *)&attr, c->fork.landlock_abi >= 6 ? sizeof attr : sizeof(uint64_t),
					0);
	if (rules < 0)
		return -errno;
	r = add_landlock_rules(rules, c);
	if (r == 0)
		r = child_sys(landlock_restrict_self(rules, quiet));
	close(rules);
	return r;
}
