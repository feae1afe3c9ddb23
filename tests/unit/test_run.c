#define _GNU_SOURCE
#include "run_spec.h"
#include "packet.h"
#include "run.h"
#include "tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a launcher may say; it is no more to be believed than the cell that it builds. */
struct said {
	const char      *name;
	enum launch_kind kind;
	size_t           fds;
	size_t           pipes;   /* that were asked for */
	bool             started; /* was said before */
	enum run_event   want;
};

/* clang-format off */
static const struct said rows[] = {
	{ "two streams start a run",                        LAUNCH_STARTED, 2, 2, false, RUN_STARTED },
	{ "so do three, for who wants to write",            LAUNCH_STARTED, 3, 3, false, RUN_STARTED },
	{ "so do four, for who wants a report as well",     LAUNCH_STARTED, 4, 4, false, RUN_STARTED },
	{ "a run without streams is over",                  LAUNCH_STARTED, 0, 2, false, RUN_ENDED },
	{ "a run with one stream is over, and it is closed", LAUNCH_STARTED, 1, 2, false, RUN_ENDED },
	{ "so is one with a stream that nobody asked for",  LAUNCH_STARTED, 3, 2, false, RUN_ENDED },
	{ "so is one without a stream that was asked for",  LAUNCH_STARTED, 2, 3, false, RUN_ENDED },
	{ "so is one with more streams than there are",     LAUNCH_STARTED, 5, 4, false, RUN_ENDED },
	{ "a run that starts twice is over",                LAUNCH_STARTED, 2, 2, true,  RUN_ENDED },
	{ "a limit has no descriptors",                     LAUNCH_LIMIT,   2, 2, true,  RUN_ENDED },
	{ "an end has none",                                LAUNCH_ENDED,   3, 3, true,  RUN_ENDED },
	{ "a limit goes on",                                LAUNCH_LIMIT,   0, 2, true,  RUN_LIMIT },
	{ "a word that nobody knows has none",              77,             1, 2, true,  RUN_ENDED },
	{ "and goes on without",                            77,             0, 2, true,  RUN_GOES_ON },
};
/* clang-format on */

static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void check(const struct said *row)
{
	struct launch_message word;
	struct run_result     end;
	struct run         run = { .started = row->started, .pipes = row->pipes };
	int                pair[2], fds[5] = { 0, 1, 2, 0, 1 }, streams[PIPES_MAX], before, left;
	enum run_event     event;

	memset(&word, 0, sizeof word);
	word.kind = row->kind;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || packet_send(pair[1], &word, sizeof word, fds, row->fds) < 0) {
		tap_ok(false, "%s: no socket", row->name);
		return;
	}
	run.sock = pair[0];
	before   = count_open();
	event    = run_receive_event(&run, streams, &end);
	left     = event == RUN_STARTED ? (int)row->fds : 0;
	tap_ok(event == row->want && count_open() == before + left, "%s", row->name);
	for (int i = 0; i < left; i++)
		close(streams[i]);
	close(pair[0]);
	close(pair[1]);
}

/* Ends that a supervisor that was taken over could make up: each would harm the server, or its figures. */
static void spoil_warm(struct run_result *end) { end->warm = 255; }
static void spoil_refused(struct run_result *end) { end->refused_known = 2; }
static void spoil_reason(struct run_result *end) { end->reason = (enum exit_reason)10000; }
static void spoil_time(struct run_result *end) { end->figures.wall_ms = __builtin_nan(""); }
static void spoil_cpu(struct run_result *end) { end->figures.cpu_ms = __builtin_inf(); }
static void spoil_date(struct run_result *end) { end->started_at = 1e300; }
static void spoil_hits(struct run_result *end) { end->hits = 9; }
static void spoil_text(struct run_result *end) { memset(end->why.text, 'x', sizeof end->why.text); }

static const struct {
	const char *name;
	void (*spoil)(struct run_result *);
} ends[] = {
	{ "warm is an index of two figures, and nothing else", spoil_warm },
	{ "a yes that is neither yes nor no is refused", spoil_refused },
	{ "so is a reason that there is not", spoil_reason },
	{ "a time that is no number would stay in a sum for ever", spoil_time },
	{ "so would CPU time without an end", spoil_cpu },
	{ "a date that no calendar has is refused", spoil_date },
	{ "so are more limits than there is room for", spoil_hits },
	{ "so is a text without an end", spoil_text },
};

static void check_end(const char *name, void (*spoil)(struct run_result *), bool is_taken)
{
	struct launch_message message;
	struct run_result        end;
	struct run            run = { .started = true, .pipes = 2 };
	int                   pair[2], streams[PIPES_MAX];

	memset(&message, 0, sizeof message);
	message.kind       = LAUNCH_ENDED;
	message.end        = RUN_RESULT_NONE;
	message.end.reason = EXIT_oom;
	if (spoil)
		spoil(&message.end);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || packet_send(pair[1], &message, sizeof message, NULL, 0) < 0) {
		tap_ok(false, "%s: no socket", name);
		return;
	}
	run.sock = pair[0];
	tap_ok(run_receive_event(&run, streams, &end) == RUN_ENDED && (end.reason == EXIT_oom && end.warm <= 1) == is_taken, "%s", name);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	check_end("an end that is sound is taken", NULL, true);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		check_end(ends[i].name, ends[i].spoil, false);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check(&rows[i]);
	return tap_done();
}
