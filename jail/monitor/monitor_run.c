/* monitor_run.c - a run is checked once more, and given to a cell */
#define _GNU_SOURCE
#include "monitor_check.h"
#include "monitor_parts.h"

#include "file.h"
#include "run_spec.h"
#include "packet.h"
#include "sealed.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void send_run_refusal(int client, enum exit_reason reason, const struct err *why)
{
	struct launch_message message;

	memset(&message, 0, sizeof message);
	message.kind       = LAUNCH_ENDED;
	message.end        = RUN_RESULT_NONE;
	message.end.reason = reason;
	message.end.why    = *why;
	brig_paths_unmap_view(message.end.why.text);
	(void)packet_send_nowait(client, &message, sizeof message, NULL, 0); /* the server may have filled it */
}

static int check_run_fds(const struct monitor_run *run, const int *fds, struct err *e)
{
	size_t       len, at = monitor_count_spec_fds(run);
	struct statx st;

	if (!monitor_is_seqpacket_pair(fds[0]))
		return err_set(e, ERR_PROTOCOL, "run: its client is no socket of a pair");
	if (sealed_check(fds[1], EXEC_ARGS_BYTES_MAX, &len, e) < 0 ||
	    (len != run->order.head.exec_args.len && err_set(e, ERR_PROTOCOL, "are of another size") < 0))
		return err_wrap(e, "run: words");
	if (run->order.head.code_len &&
	    (sealed_check(fds[2], RUN_SPEC_CODE_MAX, &len, e) < 0 ||
	     (len != run->order.head.code_len && err_set(e, ERR_PROTOCOL, "is of another size") < 0)))
		return err_wrap(e, "run: program");
	if (run->order.head.tools && !monitor_is_stream_pair(fds[at - 1]) &&
	    !monitor_is_seqpacket_pair(fds[at - 1]))
		return err_set(e, ERR_PROTOCOL, "run: what leads to its tools is no socket of a pair");
	for (uint32_t i = 0; i < run->shown_len; i++) {
		if (file_stat_type(fds[at + i], &st) < 0 || !mount_can_ro_bind(st.stx_mode))
			return err_set(e, ERR_PROTOCOL, "run: what it shows is neither a directory nor a regular file");
		if (!(fcntl(fds[at + i], F_GETFL) & O_PATH)) /* its close could wait for a file system */
			return err_set(e, ERR_PROTOCOL, "run: what it shows is an open file");
	}
	if (run->files && !monitor_is_stream_pair(fds[at + run->shown_len]))
		return err_set(e, ERR_PROTOCOL, "run: where its files come from is no socket of a pair");
	return 0;
}

/* Tries the waiting cells in turn: one may have died without the monitor having read of it. GONE: none is left. */
static enum monitored_cell_answer give_run_to_waiting_cell(struct monitor *k, const struct monitor_run *run,
							   const int *fds, struct err *e)
{
	enum monitored_cell_answer answer = MONITORED_CELL_IS_GONE;
	struct monitored_cell     *s;

	while (answer == MONITORED_CELL_IS_GONE && (s = monitor_find_waiting_cell(k, run))) {
		answer = monitored_cell_assign_run(s, run, fds, e);
		if (answer != MONITORED_CELL_TOOK_IT)
			monitored_cell_close_control(s);
	}
	return answer;
}

static enum monitored_cell_answer give_run_to_new_cell(struct monitor *k, const struct monitor_run *run,
							   const int *fds, struct err *e)
{
	struct monitored_cell     *s = monitor_open_cell(k, run->profile, run, fds + monitor_count_spec_fds(run), e);
	enum monitored_cell_answer answer;

	if (!s)
		return MONITORED_CELL_REFUSED;
	answer = monitored_cell_assign_run(s, run, fds, e);
	if (answer == MONITORED_CELL_IS_GONE)
		err_set(e, ERR_SETUP, "the supervisor of the profile was killed");
	if (answer != MONITORED_CELL_TOOK_IT)
		monitored_cell_close_control(s);
	return answer;
}

static int give_run_to_cell(struct monitor *k, const struct monitor_run *run, const int *fds, struct err *e)
{
	enum monitored_cell_answer answer = MONITORED_CELL_IS_GONE;

	if (monitor_open_rootfs(k, run->profile, e) < 0)
		return -1;
	if (!run->shown_len && !run->files && !run->terminals)
		answer = give_run_to_waiting_cell(k, run, fds, e);
	if (answer == MONITORED_CELL_IS_GONE)
		answer = give_run_to_new_cell(k, run, fds, e);
	return answer == MONITORED_CELL_TOOK_IT ? 0 : -1;
}

int monitor_handle_run(struct monitor *k, const struct monitor_message *m, int *fds, struct err *ignored)
{
	const struct monitor_run *run = &m->run;
	struct err                e;

	(void)ignored; /* whatever is wrong with a run is an error of that run */
	monitor_accept_returned_lease(k, &run->cell); /* its cell may be just what the run needs */
	if (!monitor_is_profile_served(k, run->profile)) {
		err_set(&e, ERR_PROTOCOL, "run: there is no profile %u", run->profile);
		send_run_refusal(fds[0], EXIT_denied, &e);
	} else if (monitor_check_run(run, &k->kept[run->profile].plan, &e) < 0 || check_run_fds(run, fds, &e) < 0 ||
		   give_run_to_cell(k, run, fds, &e) < 0) {
		bool is_denied = e.kind == ERR_DENIED || e.kind == ERR_PROTOCOL || e.kind == ERR_BAD_SPEC;

		send_run_refusal(fds[0], is_denied ? EXIT_denied : EXIT_setup_failed, &e);
	}
	return 0;
}
