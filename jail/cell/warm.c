#define _GNU_SOURCE
#include "warm.h"

#include "cell.h"
#include "clock.h"
#include "fd.h"
#include "packet.h"
#include "user_ns.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define FOUR_CLOSED -1, -1, -1, -1
#define TWELVE_CLOSED { FOUR_CLOSED, FOUR_CLOSED, FOUR_CLOSED }
const struct warm WARM_NONE = { .zygote        = { .requests = -1, .pidfd = -1 },
				.orders        = { -1, -1 },
				.run_spec_file = -1,
				.prepared      = TWELVE_CLOSED,
				.answer_fd     = -1,
				.program_fd    = -1,
				.report_fd     = -1 };
_Static_assert(PREPARED_FDS == 12, "WARM_NONE closes none that is not open");

/* --- making ready --- */

int warm_open_channels(struct warm *w, struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, w->orders) < 0)
		return err_sys(e, "set-up step channels: orders");
	w->run_spec_file = run_spec_file_open(e);
	return w->run_spec_file < 0 ? -1 : 0;
}

/* While a zygote imports, requests fill its socket; one more would not be sent, and its run would fail. */
bool warm_is_zygote_ready(const struct warm *w)
{
	return w->is_wanted && w->zygote.is_up && packet_is_writable(w->zygote.requests);
}

int warm_adopt_prepared_fds(struct warm *w, const int *fds, size_t n, struct err *e)
{
	if (n != PREPARED_FDS || w->state != WARM_BUILDING)
		return err_set(e, ERR_BROKEN, "garbled report from the cell's set-up");
	memcpy(w->prepared, fds, sizeof w->prepared);
	w->state = WARM_PREPARED;
	return 0;
}

/* --- asking --- */

/* For answers and for reports. fds: the ends of the fork server. */
static int make_answer_and_report_sockets(struct warm *w, int fds[2], struct err *e)
{
	int answer[2], report[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answer) < 0)
		return err_sys(e, "socketpair");
	w->answer_fd = answer[0];
	fds[0]       = answer[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0)
		return err_sys(e, "socketpair");
	w->report_fd = report[0];
	fds[1]       = report[1];
	return 0;
}

/* The descriptors of a request, except ours; returns how many they are. */
static size_t fill_fork_request_fds(struct fork_params *o, int fds[FORK_REQUEST_FDS_MAX], const struct warm *w, const struct cell *c)
{
	int   *handed = fds + FORK_HANDED, group = cg_clone_fd(&c->group);
	size_t n      = FORK_GROUPS;

	fds[FORK_CELL]            = c->pidfd;
	handed[HANDED_ORDERS]     = w->orders[1];
	handed[HANDED_ORDER_FILE] = w->run_spec_file;
	handed[HANDED_CODE]       = w->prepared[PREPARED_CODE];
	handed[HANDED_IN]         = w->prepared[PREPARED_IN];
	handed[HANDED_OUT]        = w->prepared[PREPARED_OUT];
	handed[HANDED_ERR]        = w->prepared[PREPARED_ERR];
	handed[HANDED_RESULT]     = w->prepared[PREPARED_RESULT];
	o->joins                  = (uint32_t)c->child.join_len;
	o->clones_into            = group >= 0;
	for (int i = 0; i < c->child.join_len; i++)
		fds[n++] = c->child.join_fd[i];
	if (group >= 0)
		fds[n++] = group;
	return n;
}

/* For messages. */
static const char *fork_server_name(const struct warm *w)
{
	return w->by_forker ? "the fork server" : "the zygote";
}

static int send_fork_request(struct warm *w, const struct cell *c, bool workspace_exec, const struct child_rlimits *rlimits, int ours[2],
			struct err *e)
{
	struct fork_params o;
	int                fds[FORK_REQUEST_FDS_MAX], r;
	size_t             n;

	if (make_answer_and_report_sockets(w, ours, e) < 0)
		return -1;
	memset(&o, 0, sizeof o); /* padding too */
	o.rlimits        = *rlimits;
	o.init_id        = c->child.init_id;
	o.program_id     = USER_NS_PROGRAM_ID;
	o.workspace_exec = workspace_exec;
	o.ahead          = w->ahead;
	o.has_code       = w->code != CODE_TO_REMOVE;
	o.landlock_abi   = c->base->landlock_abi;
	o.owner_id       = c->slot.init_id;
	o.cpu_before_ns  = w->cpu_before_ns;
	fds[FORK_ANSWER] = ours[0];
	fds[FORK_REPORT] = ours[1];
	n                = fill_fork_request_fds(&o, fds, w, c);
	r = packet_send(w->by_forker ? w->forker->requests : w->zygote.requests, &o, sizeof o, fds, n);
	if (r == -EPIPE && w->by_forker) { /* it died a moment ago */
		forker_close(w->forker);
		if (forker_start(w->forker, e) < 0)
			return -1;
		r = packet_send(w->forker->requests, &o, sizeof o, fds, n);
	}
	errno = -r;
	return r < 0 ? err_sys(e, "%s%s cannot be reached", w->by_forker ? "set-up step fork-program: " : "", fork_server_name(w)) : 0;
}

int warm_request_fork(struct warm *w, const struct cell *c, bool workspace_exec, const struct child_rlimits *rlimits, struct err *e)
{
	int ours[2] = { -1, -1 }, r;

	if (w->asked_times++ == WARM_ASKED_MAX)
		return err_set(e, ERR_SETUP, "%d %ss died one after the other", WARM_ASKED_MAX, fork_server_name(w) + strlen("the "));
	if (w->by_forker && forker_start(w->forker, e) < 0)
		return -1;
	w->server_was_importing = !w->by_forker && w->zygote.starts;
	r = send_fork_request(w, c, workspace_exec, rlimits, ours, e);
	fd_closep(&ours[0]);
	fd_closep(&ours[1]);
	w->generation = w->by_forker ? w->forker->generation : w->zygote.generation;
	w->state      = WARM_ASKED;
	w->asked      = clock_ms(CLOCK_MONOTONIC);
	return r;
}

int warm_deliver_spec(struct warm *w, const struct run_spec_head *o, const struct run_spec_fds *fds, struct err *e)
{
	int r;

	if (!o->code_len && w->code == CODE_STAYS)
		w->code = CODE_TO_REMOVE;
	if (run_spec_file_copy(w->run_spec_file, o, fds, e) < 0)
		return -1;
	r     = run_spec_send_head(w->orders[0], o, fds->tools);
	errno = -r;
	return r < 0 ? err_sys(e, "set-up step order: the order") : 0;
}

/* --- receiving --- */

/* The fork has these. A copy here would keep ends of file from arriving. */
static void close_handed_fds(struct warm *w)
{
	fd_closep(&w->orders[1]);
	for (size_t i = 0; i < PREPARED_CLIENT; i++)
		fd_closep(&w->prepared[i]);
}

static enum warm_answer return_to_prepared_state(struct warm *w)
{
	if (w->by_forker && w->generation == w->forker->generation)
		forker_close(w->forker); /* it has ended, even if its pidfd does not say so yet */
	fd_closep(&w->answer_fd);
	fd_closep(&w->report_fd);
	w->offered = 0;
	w->state   = WARM_PREPARED;
	return WARM_AGAIN;
}

static enum warm_answer report_lost_fork(struct warm *w, struct err *e)
{
	fd_closep(&w->answer_fd);
	err_set(e, ERR_SETUP, "the run cannot be watched: %s ended, and with it what is known of the program", fork_server_name(w));
	return WARM_IS_LOST;
}

static bool is_before_fork(const struct warm *w)
{
	return w->state == WARM_ASKED || w->state == WARM_WAITS;
}

/* After FORKED or FAILED the fork server sends nothing more about this cell. */
static enum warm_answer handle_fork_message(struct warm *w, const struct fork_message *message, int *fds, size_t n, struct err *e)
{
	switch ((enum fork_message_kind)message->kind) {
	case FORK_WAITS:
		w->state                = w->state == WARM_ASKED ? WARM_WAITS : w->state;
		w->server_was_importing = false;
		w->asked                = clock_ms(CLOCK_MONOTONIC); /* a spec may be there already: the wait for its fork begins now */
		return WARM_GOES_ON;
	case FORK_FORKS:
		if (!is_before_fork(w))
			return report_lost_fork(w, e);
		w->state = WARM_FORKS;
		w->asked = clock_ms(CLOCK_MONOTONIC);
		close_handed_fds(w);
		return WARM_GOES_ON;
	case FORK_FORKED:
		if (w->state != WARM_FORKS || n != 1)
			return report_lost_fork(w, e);
		w->program    = message->value;
		w->program_fd = fd_take(&fds[0]);
		fd_closep(&w->answer_fd);
		if (w->by_forker && w->forker->is_for_one)
			forker_close(w->forker);
		return WARM_GOES_ON;
	case FORK_FAILED:
		if (w->fork_is_confined)
			return report_lost_fork(w, e);
		fd_closep(&w->answer_fd);
		errno = message->value;
		err_sys(e, "%s%s cannot fork into the cell", w->by_forker ? "set-up step fork-program: " : "", fork_server_name(w));
		return WARM_CANNOT;
	case FORK_RETIRES:
		return is_before_fork(w) ? return_to_prepared_state(w) : report_lost_fork(w, e);
	}
	return report_lost_fork(w, e);
}

enum warm_answer warm_receive_answer(struct warm *w, struct err *e)
{
	struct fork_message message;
	enum warm_answer    answer;
	int                 fds[1] = { -1 };
	size_t              n;
	ssize_t             got = packet_receive(w->answer_fd, &message, sizeof message, fds, ARRAY_LEN(fds), &n);

	if ((got > 0 && got != sizeof message) || (got < 0 && errno == EMSGSIZE))
		warm_kill_fork_server(w); /* it does not keep to the protocol */
	if (got != sizeof message)
		answer = is_before_fork(w) ? return_to_prepared_state(w) : report_lost_fork(w, e);
	else
		answer = handle_fork_message(w, &message, fds, n, e);
	fd_closep(&fds[0]);
	return answer;
}

bool warm_awaits_fork(const struct warm *w)
{
	return w->answer_fd >= 0 && (w->state == WARM_FORKS || packet_is_readable(w->answer_fd)); /* FORKS is sent before the fork is made */
}

int warm_reap_program(struct warm *w, int *status, struct err *e)
{
	siginfo_t end;
	int       r;

	while ((r = waitid(P_PIDFD, (id_t)w->program_fd, &end, WEXITED)) < 0 && errno == EINTR)
		;
	if (r < 0) {
		err_sys(e, "how the program ended is not known");
		waitpid(w->program, NULL, WNOHANG); /* PID 1 cannot end before its namespace is empty */
	}
	fd_closep(&w->program_fd);
	w->program = 0;
	if (r < 0)
		return -1;
	*status = end.si_code == CLD_EXITED ? W_EXITCODE(end.si_status, 0) : end.si_status | (end.si_code == CLD_DUMPED ? WCOREFLAG : 0);
	return 0;
}

/* Only if the server that was asked is still the current one: its successor must not be killed for it. */
void warm_kill_fork_server(const struct warm *w)
{
	int      pidfd      = w->by_forker ? w->forker->pidfd : w->zygote.pidfd;
	uint32_t generation = w->by_forker ? w->forker->generation : w->zygote.generation;

	if (pidfd >= 0 && generation == w->generation)
		pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

void warm_close(struct warm *w)
{
	close_handed_fds(w);
	for (size_t i = 0; i < PREPARED_FDS; i++)
		fd_closep(&w->prepared[i]);
	fd_closep(&w->orders[0]);
	fd_closep(&w->run_spec_file);
	fd_closep(&w->answer_fd);
	fd_closep(&w->program_fd);
	fd_closep(&w->report_fd);
}
