/* test_zygote.c - what a supervisor asks of a zygote, and what one that was taken over would ask */
#define _GNU_SOURCE
#include "packet.h"
#include "sealed.h"
#include "tap.h"
#include "zygote.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CELL_ROOT = 0, PROGRAM = 1000, STATUS_FORKS = 7 };

/* clang-format off */
static const struct {
	const char       *name;
	struct fork_params order;
	int               more; /* descriptors than the order says */
	bool              is_short;
	const char       *answer; /* forks, waits or refused */
} rows[] = {
	{ "a cell with two ids is forked into",                { .init_id = CELL_ROOT, .program_id = PROGRAM, .ahead = 1 }, 0, false, "forks" },
	{ "a cell with one id is forked into",                 { .init_id = PROGRAM, .program_id = PROGRAM, .ahead = 1 }, 0, false, "forks" },
	{ "a cell whose order comes later is waited for",      { .init_id = CELL_ROOT, .program_id = PROGRAM }, 0, false, "waits" },
	{ "no program becomes root of its cell",               { .init_id = CELL_ROOT, .program_id = CELL_ROOT, .ahead = 1 }, 0, false, "refused" },
	{ "nor with another PID 1",                            { .init_id = PROGRAM, .program_id = CELL_ROOT, .ahead = 1 }, 0, false, "refused" },
	{ "no cell is entered as somebody else",               { .init_id = 1, .program_id = PROGRAM, .ahead = 1 }, 0, false, "refused" },
	{ "more groups than there are trees are refused",      { .program_id = PROGRAM, .ahead = 1, .joins = CG_TREES_MAX + 1 }, 0, false, "refused" },
	{ "two groups to be cloned into are refused",          { .program_id = PROGRAM, .ahead = 1, .clones_into = 2 }, 0, false, "refused" },
	{ "a flag of 2 is refused",                            { .program_id = PROGRAM, .ahead = 2 }, 0, false, "refused" },
	{ "another flag of 2 as well",                         { .program_id = PROGRAM, .ahead = 1, .has_code = 2 }, 0, false, "refused" },
	{ "a descriptor less than said is refused",            { .program_id = PROGRAM, .ahead = 1, .joins = 1 }, -1, false, "refused" },
	{ "a descriptor more than said is refused",            { .program_id = PROGRAM, .ahead = 1 }, 1, false, "refused" },
	{ "an order that is too short is refused",             { .program_id = PROGRAM, .ahead = 1 }, 0, true, "refused" },
};
/* clang-format on */

/* To the numbers that a zygote knows, whatever has them. */
static void take_descriptors(int orders, int ready)
{
	const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	void                    *activity;
	struct err               e;
	int                      from[] = { orders, ready, STDERR_FILENO, sealed_create("filter", &allow, sizeof allow, &e),
					    memfd_create_mapped("run-activity", sizeof(struct run_activity), &activity, &e) };

	_Static_assert(ARRAY_LEN(from) == ZYGOTE_FDS_END - ZYGOTE_FD_REQUESTS, "each descriptor that a zygote has");

	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 32);
	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		if (dup2(from[i], ZYGOTE_FD_REQUESTS + (int)i) < 0)
			abort();
	close_range(ZYGOTE_FDS_END, ~0u, 0);
}

static _Noreturn void be_zygote(int orders, int ready)
{
	struct zygote        z = { 0 };
	struct fork_request *request;

	take_descriptors(orders, ready);
	if (zygote_start_serving(&z) < 0)
		abort();
	_exit(fork_server_await_request(&z.server, &request) ? STATUS_FORKS : 0);
}

static pid_t start(int *orders)
{
	int   pair[2], ready[2];
	pid_t pid;
	char  byte;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		abort();
	pid = fork();
	if (pid == 0)
		be_zygote(pair[1], ready[1]);
	close(pair[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
	*orders = pair[0];
	return pid;
}

/* The same socket stands for each descriptor: its other end tells when the last one was closed. */
static void ask(int orders, size_t i, int fd)
{
	const struct fork_params *o = &rows[i].order;
	size_t                   n = (size_t)((int)(FORK_GROUPS + o->joins + o->clones_into) + rows[i].more);
	int                      fds[PACKET_FDS_MAX];

	for (size_t k = 0; k < n; k++)
		fds[k] = fd;
	if (packet_send(orders, o, sizeof *o - rows[i].is_short, fds, n) < 0)
		abort();
	close(fd);
}

/* It ends by itself: nobody is left who could ask. */
static const char *answer(size_t i)
{
	struct fork_message word = { 0 };
	int              orders, pair[2], status;
	pid_t            pid = start(&orders);

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	ask(orders, i, pair[1]);
	(void)!recv(pair[0], &word, sizeof word, 0);
	close(pair[0]);
	close(orders);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status))
		return "died";
	return WEXITSTATUS(status) == STATUS_FORKS ? "forks" : word.kind == FORK_WAITS ? "waits" : word.kind ? "failed" : "refused";
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		tap_is(answer(i), rows[i].answer, rows[i].name);
	return tap_done();
}
