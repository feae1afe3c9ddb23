#define _GNU_SOURCE
#include "launcher_parts.h"

#include "fd.h"
#include "packet.h"
#include "verdict.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int launcher_say(int sock, const struct launch_word *word, const int *fds, size_t n, struct err *e)
{
	int r = packet_offer(sock, word, sizeof *word, fds, n); /* a client that does not listen is not waited for */

	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return 0;
	errno = -r;
	return err_sys(e, "the client cannot be told");
}

static void say_quietly(int sock, const struct launch_word *word)
{
	struct err ignored; /* who misses it sees the end */

	if (sock >= 0)
		(void)!launcher_say(sock, word, NULL, 0, &ignored);
}

void launcher_say_started(struct watch *w)
{
	struct launch_word word = { .kind = LAUNCH_STARTED };
	size_t             n = pipes_count(w->order->stdin_pipe, w->order->result_pipe);
	struct err         e;

	if (launcher_say(w->client, &word, w->streams, n, &e) < 0)
		watch_fail(w, EXIT_cancelled, &e); /* its output would go nowhere */
	for (size_t i = 0; i < ARRAY_LEN(w->streams); i++)
		fd_closep(&w->streams[i]);
}

void launcher_say_limit(const struct watch *w, enum limit_id limit)
{
	struct launch_word word = { .kind = LAUNCH_LIMIT, .number = limit, .value = limits_value(w->order->limits, &limits_fields[limit]) };

	say_quietly(w->client, &word);
}

/* The order of a ticket's descriptors is launcher.h's; its client's ends are pipes.h's. */
static int make_ticket(struct watch *w, int fds[TICKET_FDS])
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	w->ticket            = pair[0];
	fds[TICKET_LAUNCHER] = pair[1];
	fds[TICKET_ORDERS]   = w->cell.warm.orders[0];
	fds[TICKET_LETTER]   = w->cell.warm.letter;
	memcpy(fds + TICKET_STDOUT, w->cell.warm.prepared + PREPARED_CLIENT, PIPES_MAX * sizeof *fds);
	return 0;
}

void launcher_say_ready(struct watch *w)
{
	struct launch_word word = { .kind = LAUNCH_READY };
	int                fds[TICKET_FDS];

	if (w->ticket >= 0)
		return; /* after another zygote was asked: the ticket that is out is as good as before, and nobody would hear the old one */
	if (w->cell.warm.state == WARM_PREPARED || make_ticket(w, fds) < 0) {
		say_quietly(w->control, &word);
		return;
	}
	(void)!packet_send(w->control, &word, sizeof word, fds, TICKET_FDS);
	close(fds[TICKET_LAUNCHER]);
}

void launcher_say_taken(struct watch *w)
{
	if (w->tell_taken > 0)
		say_quietly(w->control, &(struct launch_word){ .kind = LAUNCH_TAKEN });
	w->tell_taken = 0;
}

void launcher_say_ended(const struct watch *w)
{
	say_quietly(w->client >= 0 ? w->client : w->control, &(struct launch_word){ .kind = LAUNCH_ENDED, .end = w->end });
}

void launcher_sum_up(struct watch *w)
{
	launcher_say_taken(w);
	verdict_fill(w);
	if (!w->decided) /* the kernel was faster than we: with version 2 it kills for memory without asking */
		watch_say_limit(w, w->end.reason);
	memcpy(w->end.rootfs_digest, w->cell.rootfs.digest, sizeof w->end.rootfs_digest);
	w->end.warm = w->started > 0 && w->is_warm_order;
}

/* Terminal keys go to the client; an end asked of us by signal is a cancel. What else the caller left does not matter. */
static int take_signals(void)
{
	sigset_t set;

	setsid();
	umask(022); /* the cell inherits it: under 077 the program could not read main.py, under 0777 we could not remove what we made */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a caller's file size limit is an error to report, not a death */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_SETMASK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void launcher_begin(struct watch *w, const struct run_order *order)
{
	prctl(PR_SET_NAME, "brig-launcher");
	watch_init(w, order);
	w->signals = take_signals();
}
