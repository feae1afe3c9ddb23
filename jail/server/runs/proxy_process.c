#define _GNU_SOURCE
#include "proxy_process.h"

#include "fd.h"
#include "privilege.h"
#include "proxy_exec.h"
#include "proxy_protocol.h"
#include "rootless.h"
#include "slot.h"
#include "sub_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the process itself, before it is brig-proxy --- */

/* *is_one: there is no id but the caller's. */
static int find_host_ids(struct id_range *ret, bool *is_one, struct err *e)
{
	struct rootless r = { .kind = ROOTLESS_NONE };
	int             is_root = privilege_check_is_root();

	*is_one = false;
	if (is_root > 0)
		return sub_ids_choose_for_root(ret, e);
	if (is_root < 0)
		return err_sys(e, "capabilities");
	if (rootless_enter(&r, e) < 0)
		return -1;
	*ret    = r.ids;
	*is_one = r.kind == ROOTLESS_SINGLE;
	return 0;
}

static int switch_to_slot_user(const struct brig_paths *places, struct slot *slot, struct err *e)
{
	struct id_range ids = { 0 };
	bool            is_one;

	if (find_host_ids(&ids, &is_one, e) < 0)
		return -1;
	if (is_one)
		return privilege_drop_caps(e);
	/* A slot that is reserved from cells; where a service holds all of those, any other. */
	if (slot_take_free(places->runtime, &ids, id_range_reserve(&ids), slot, e) < 0 &&
	    (e->kind != ERR_LIMIT || slot_take_free(places->runtime, &ids, 0, slot, e) < 0))
		return -1;
	return privilege_switch_to_account(slot->program_id, slot->program_id, PRIVILEGE_NO_CAPS, e);
}

static _Noreturn void confine_and_exec_proxy(const struct brig_paths *places, int program, int sock, int config)
{
	struct slot slot   = { .fd = -1 };
	int         keep[] = { program, sock, config };
	struct err  e;

	/* first: with copies of the server's sockets here, the other ends would not see end of file */
	(void)!fd_close_all_but(keep, ARRAY_LEN(keep));
	if (switch_to_slot_user(places, &slot, &e) < 0 || privilege_set_no_new_privs(PRIVILEGE_NO_CAPS, &e) < 0) {
		fprintf(stderr, "brigd: brig-proxy: %s\n", e.text);
		_exit(EXIT_FAILURE);
	}
	proxy_exec(program, sock, config, slot.fd);
	fprintf(stderr, "brigd: brig-proxy: exec: %m\n");
	_exit(EXIT_FAILURE);
}

/* --- the server's side --- */

int proxy_process_start(const struct brig_paths *places, int program, int config, int *ret_sock, struct err *e)
{
	scoped_fd ours = -1, theirs = -1;
	int       pair[2];
	pid_t     pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "brig-proxy: socketpair");
	ours   = pair[0];
	theirs = pair[1];
	pid    = fork();
	if (pid == 0)
		confine_and_exec_proxy(places, program, theirs, config);
	if (pid < 0)
		return err_sys(e, "brig-proxy: fork");
	*ret_sock = fd_take(&ours);
	return 0;
}
