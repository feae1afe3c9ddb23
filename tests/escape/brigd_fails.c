/*
 * brigd_fails.c - linked before brigd's own steps: one of them fails
 *
 *   BRIG_FAILS=list fails/brigd                      the steps, a line each
 *   BRIG_FAILS=list-network fails/brigd              those of a run that has a network besides
 *   BRIG_FAILS="STEP ERRNO HOW" fails/brig run ...   HOW: instead (it is not carried out) or after (it is, and fails then)
 *
 * The product knows nothing of this: the linker replaces its tables by copies (--wrap), and the calls of launcher.c,
 * cell.c and the door by those below.
 */
#define _GNU_SOURCE
#include "cell.h"
#include "detach.h"
#include "filter_cache.h"
#include "group.h"
#include "init_image.h"
#include "loop.h"
#include "net.h"
#include "net_config.h"
#include "net_sockets.h"
#include "peer.h"
#include "place.h"
#include "privilege.h"
#include "run.h"
#include "run_id.h"
#include "shown.h"
#include "store.h"
#include "trust_mount.h"
#include "user_ns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 40 };

static char failing[64], how[16];
static int  error;

/* --- rows of the cell and of the program --- */

static int fail_instead(struct child_ctx *c)
{
	(void)c;
	return -error;
}

static int fail(struct child_ctx *c, child_step_fn *real)
{
	int r = real(c);

	c->detail = -1;
	return r < 0 ? r : -error;
}

/* TABLE:STEP, for some names are in more than one table. */
static bool is_failing(const char *table, const char *step)
{
	size_t n = strlen(table);

	return strncmp(failing, table, n) == 0 && failing[n] == ':' && strcmp(failing + n + 1, step) == 0;
}

static void copy(const char *table, struct child_step *to, const struct child_step *from, child_step_fn **real, child_step_fn *fail_after)
{
	for (size_t i = 0; from[i].name; i++) {
		if (i + 1 == ROWS_MAX)
			abort();
		to[i] = from[i];
		if (!is_failing(table, from[i].name))
			continue;
		*real     = from[i].run;
		to[i].run = strcmp(how, "after") == 0 ? fail_after : fail_instead;
	}
}

#define TABLES TABLE(cell) TABLE(enter) TABLE(program)
#define TABLE(table)                                                                                                      \
	extern const struct child_step __real_child_##table##_steps[];                                                    \
	extern struct child_step       __wrap_child_##table##_steps[];                                                    \
	struct child_step __attribute__((visibility("default"))) __wrap_child_##table##_steps[ROWS_MAX];                  \
	static child_step_fn *real_##table;                                                                               \
	static int            fail_##table(struct child_ctx *c)                                                           \
	{                                                                                                                \
		return fail(c, real_##table);                                                                             \
	}
TABLES
#undef TABLE

/* --- calls of the launcher and of the door --- */

static bool fails(const char *name)
{
	errno = error;
	return strcmp(name, failing) == 0;
}

/* clang-format off */
#define CALLS                                                                                                                    \
	CALL(slot_take,               (const char *dir, const struct id_range *ids, uint32_t first, struct slot *ret, struct err *e), (dir, ids, first, ret, e)) \
	CALL(cell_open,               (struct cell *c, const struct cell_order *o, struct err *e), (c, o, e))                        \
	CALL(user_ns_make,            (const struct slot *slot, bool quotas, struct err *e), (slot, quotas, e))                      \
	CALL(privilege_forget_caller, (bool on_host, bool *no_groups, struct err *e), (on_host, no_groups, e))                   \
	CALL(privilege_hide,          (struct err *e), (e))                                                                      \
	CALL(rootless_enter,             (struct rootless *ret, struct err *e), (ret, e))                                              \
	CALL(privilege_drop,          (struct err *e), (e))                                                                          \
	CALL(privilege_become_owner,  (uint32_t id, struct err *e), (id, e))                                                         \
	CALL(group_limit,             (struct group *g, const struct limits *l, struct err *e), (g, l, e))                           \
	CALL(group_watch_oom,         (const struct group *g, struct group_oom *ret, struct err *e), (g, ret, e))                  \
	CALL(store_open_first,        (const char *const *stores, const char *name, struct store_tree *ret, struct err *e), (stores, name, ret, e)) \
	CALL(detach_mount,            (int from, uint64_t attrs, const char *what, struct err *e), (from, attrs, what, e))           \
	CALL(shown_open,              (int dir, uint32_t id, bool *inert, struct err *e), (dir, id, inert, e))                       \
	CALL(filter_open,             (const struct policy_bundle *b, const char *dir, struct filter *ret, struct err *e), (b, dir, ret, e)) \
	CALL(net_enter_empty,         (struct err *e), (e))                                                                          \
	CALL(init_image_open,         (struct err *e), (e))                                                                          \
	CALL(places_find,             (struct places *ret, struct err *e), (ret, e))                                                 \
	CALL(loop_open,               (struct loop *ret, struct err *e), (ret, e))                                                   \
	CALL(loop_add,                (struct loop *l, struct loop_source *source, struct err *e), (l, source, e))                   \
	CALL(peer_identify,           (struct peer *ret, struct peer_groups *groups, int sock, struct err *e), (ret, groups, sock, e)) \
	CALL(run_id_make,             (char id[RUN_ID_LEN + 1], struct err *e), (id, e))                                             \
	CALL(exec_args_pack,              (struct exec_args *ret, char **text, const char *const *paths, const char *cwd, char *const *argv, char *const *envp, struct err *e), (ret, text, paths, cwd, argv, envp, e)) \
	CALL(run_start,               (struct run *ret, const struct run_order *order, const struct places *places, struct err *e), (ret, order, places, e))
#define NETWORK_CALLS                                                                                                            \
	CALL(net_config_make,         (struct net_config *ret, const struct places *places, const struct net_policy *policy, const struct net_rules *asked, struct err *e), (ret, places, policy, asked, e)) \
	CALL(net_add_route,           (struct err *e), (e))                                                                          \
	CALL(net_sockets_open,        (const struct net_listeners *what, struct net_sockets *ret, struct err *e), (what, ret, e))    \
	CALL(trust_mount_make,        (int trust_fd, int tree_fd, const struct mount_step *step, struct err *e), (trust_fd, tree_fd, step, e))
/* clang-format on */

#define CALL(name, parameters, arguments)                                           \
	__typeof__(name) __real_##name, __wrap_##name;                              \
	int __wrap_##name parameters                                                \
	{                                                                           \
		return fails(#name) ? err_sys(e, "set-up step %s", #name) : __real_##name arguments; \
	}
CALLS NETWORK_CALLS
#undef CALL

__typeof__(group_open) __real_group_open, __wrap_group_open;
enum group_answer __wrap_group_open(struct group *ret, const char *cache_dir, uint32_t slot, struct err *e)
{
	if (!fails("group_open"))
		return __real_group_open(ret, cache_dir, slot, e);
	err_sys(e, "set-up step group_open");
	return GROUP_FAILED;
}

static void list(void)
{
#define TABLE(table)                                                     \
	for (size_t i = 0; __real_child_##table##_steps[i].name; i++)    \
		printf(#table ":%s\n", __real_child_##table##_steps[i].name);
	TABLES
#undef TABLE
#define CALL(name, parameters, arguments) puts(#name);
	CALLS
#undef CALL
	puts("group_open");
}

static void list_network(void)
{
#define CALL(name, parameters, arguments) puts(#name);
	NETWORK_CALLS
#undef CALL
}

static void __attribute__((constructor)) prepare(void)
{
	const char *wanted = getenv("BRIG_FAILS");

	if (wanted && strncmp(wanted, "list", 4) == 0) {
		(strcmp(wanted, "list") == 0 ? list : list_network)();
		fflush(stdout);
		_exit(0);
	}
	if (wanted && sscanf(wanted, "%63s %d %15s", failing, &error, how) != 3)
		abort();
#define TABLE(table) copy(#table, __wrap_child_##table##_steps, __real_child_##table##_steps, &real_##table, fail_##table);
	TABLES
#undef TABLE
}
