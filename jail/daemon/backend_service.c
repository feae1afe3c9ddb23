#define _GNU_SOURCE
#include "backend_service.h"

#include "clock.h"
#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { BEGIN_MS_MAX = 10000, STATS_MS_MAX = 500, STATS_AGE_MS = 50, STATS_PAUSE_MS = 10000 };

static int tell(int keeper, const struct keeper_word *word, const int *fds, size_t n, struct err *e)
{
	int r = packet_send(keeper, word, sizeof *word, fds, n);

	if (r == -EPIPE || r == -ECONNRESET)
		return err_set(e, ERR_SETUP, "the keeper ended; what it said is above");
	errno = -r;
	return r < 0 ? err_sys(e, "the keeper cannot be reached") : 0;
}

/* --- before anybody is served --- */

static int tell_setup(int keeper, const struct backend_service_wishes *w, struct err *e)
{
	struct keeper_word word;

	memset(&word, 0, sizeof word);
	word.kind           = KEEPER_SETUP;
	word.setup.mode     = w->parts->mode;
	word.setup.id_base  = w->ids->base;
	word.setup.id_count = w->ids->count;
	memcpy(word.setup.store, w->places->store, sizeof word.setup.store);
	memcpy(word.setup.runtime, w->places->runtime, sizeof word.setup.runtime);
	return tell(keeper, &word, NULL, 0, e);
}

static uint64_t ready_of(const struct profile *p, uint64_t otherwise)
{
	uint64_t ready = json_object_get(p->source, "ready") ? p->ready : otherwise;

	return ready < KEEPER_READY_MAX ? ready : KEEPER_READY_MAX;
}

/* Names between commas. They fit: profile_parse() has seen to it. */
static void fill_preload(char text[KEEPER_PRELOAD_MAX], const json_t *names)
{
	for (size_t i = 0, n = 0; i < json_array_size(names) && n < KEEPER_PRELOAD_MAX; i++)
		n += (size_t)snprintf(text + n, KEEPER_PRELOAD_MAX - n, "%s%s", i ? "," : "", json_string_value(json_array_get(names, i)));
}

static int tell_profile(int keeper, const struct served_profile *served, const struct backend_service_wishes *w, struct err *e)
{
	const struct profile *p = &served->profile;
	struct keeper_word    word;

	memset(&word, 0, sizeof word);
	word.kind                   = KEEPER_PROFILE;
	word.profile.limits         = p->limits;
	word.profile.ceilings       = p->ceilings;
	word.profile.workspace_exec = p->workspace_exec;
	word.profile.require_all    = p->require == REQUIRE_ALL;
	word.profile.warm           = p->warm != WARM_NEVER;
	word.profile.ready          = (uint32_t)ready_of(p, w->ready);
	word.profile.zygote_cells   = (uint32_t)p->zygote_runs;
	word.profile.zygote_ms      = (uint32_t)p->zygote_ms;
	fill_preload(word.profile.preload, p->preload);
	memcpy(word.profile.name, served->name, strlen(served->name)); /* names are shorter */
	memcpy(word.profile.rootfs, p->rootfs, strlen(p->rootfs));
	return tell(keeper, &word, &served->filter_fd, 1, e);
}

static int hear(int keeper, uint32_t kind, int ms, struct keeper_answer *ret, struct err *e)
{
	struct pollfd p = { .fd = keeper, .events = POLLIN };
	size_t        n;

	if (poll(&p, 1, ms) == 0)
		return err_set(e, ERR_SETUP, "the keeper did not answer within %d ms", ms);
	if (packet_receive(keeper, ret, sizeof *ret, NULL, 0, &n) != sizeof *ret || ret->kind != kind)
		return err_set(e, ERR_SETUP, "the keeper ended; what it said is above");
	return 0;
}

static int seal(int keeper, struct err *e)
{
	struct keeper_answer answer;
	struct keeper_word   word;

	memset(&word, 0, sizeof word);
	word.kind = KEEPER_SEAL;
	if (tell(keeper, &word, NULL, 0, e) < 0 || hear(keeper, KEEPER_SEAL, BEGIN_MS_MAX, &answer, e) < 0)
		return -1;
	if (answer.err.kind == ERR_NONE)
		return 0;
	*e = answer.err;
	return err_wrap(e, "keeper");
}

static int tell_all(int keeper, const struct backend_service_wishes *w, struct err *e)
{
	if (tell_setup(keeper, w, e) < 0)
		return -1;
	if (w->profiles->n > KEEPER_PROFILES_MAX)
		return err_set(e, ERR_LIMIT, "%zu profiles, of at most %d", w->profiles->n, KEEPER_PROFILES_MAX);
	for (size_t i = 0; i < w->profiles->n; i++)
		if (tell_profile(keeper, w->profiles->item[i], w, e) < 0)
			return err_wrap(e, "profile %s", w->profiles->item[i]->name);
	return seal(keeper, e);
}

int backend_service_open(struct backend_service *ret, const struct backend_service_wishes *w, struct err *e)
{
	scoped_fd keeper = w->parts->keeper;

	if (tell_all(keeper, w, e) < 0)
		return -1;
	if (fcntl(keeper, F_SETFL, O_NONBLOCK) < 0) /* nobody waits for it from here on */
		return err_sys(e, "the keeper's socket");
	*ret = (struct backend_service){ .pid = w->parts->keeper_pid, .stats_ms = -STATS_AGE_MS };
	ret->keeper = fd_take(&keeper);
	return 0;
}

/* --- runs --- */

static int fill_shown(struct keeper_run *run, const struct backend_order *o, struct err *e)
{
	run->shown_len = (uint32_t)o->shown_len;
	for (size_t i = 0; i < o->shown_len; i++) {
		const char *name = strrchr(o->shown[i], '/') + 1; /* behind "workspace/" */

		if (strlen(name) >= SHOWN_NAME_MAX)
			return err_set(e, ERR_BAD_SPEC, "ro: a name has more than %d bytes", SHOWN_NAME_MAX - 1);
		memcpy(run->shown[i], name, strlen(name));
	}
	return 0;
}

static int fill(struct keeper_word *word, const struct backend_order *o, struct err *e)
{
	struct keeper_run *run = &word->run;

	memset(word, 0, sizeof *word);
	word->kind       = KEEPER_RUN;
	run->profile     = o->profile->index;
	run->limits      = *o->limits;
	run->words       = *o->words;
	run->code_len    = o->code_fd < 0 ? 0 : o->code_len;
	run->stdin_pipe  = o->stdin_pipe;
	run->result_pipe = o->result_pipe;
	run->warm        = o->code_fd >= 0 && !o->cold && o->profile->profile.warm != WARM_NEVER;
	run->asked       = clock_ms(CLOCK_MONOTONIC);
	return fill_shown(run, o, e);
}

enum { KEEPER_WAIT_MS = 200 };

/*
 * A crowd that comes at once fills the socket long before it fills a quota: the keeper takes a word in a fraction of a
 * millisecond, and waits for nobody, so it is waited for. Not for ever: one that stands still shall not stop us.
 */
static int send_to_keeper(int keeper, const struct keeper_word *word, const int *fds, size_t n)
{
	struct pollfd p = { .fd = keeper, .events = POLLOUT };
	int           r = packet_send(keeper, word, sizeof *word, fds, n);

	for (double end = clock_ms(CLOCK_MONOTONIC) + KEEPER_WAIT_MS; r == -EAGAIN && clock_ms(CLOCK_MONOTONIC) < end;) {
		poll(&p, 1, KEEPER_WAIT_MS);
		r = packet_send(keeper, word, sizeof *word, fds, n);
	}
	return r;
}

static int send_run(int keeper, int launcher, const struct backend_order *o, struct err *e)
{
	struct keeper_word word;
	int                fds[PACKET_FDS_MAX], r;
	size_t             n = 0;

	if (fill(&word, o, e) < 0)
		return -1;
	fds[n++] = launcher;
	fds[n++] = o->words->fd;
	if (word.run.code_len)
		fds[n++] = o->code_fd;
	for (size_t i = 0; i < o->shown_len; i++)
		fds[n++] = o->shown_fd[i];
	r = send_to_keeper(keeper, &word, fds, n);
	if (r == -EAGAIN)
		return err_set(e, ERR_LIMIT, "the keeper has as much to do as it can");
	if (r == -ETOOMANYREFS)
		return err_set(e, ERR_LIMIT, "clients that do not read hold as many descriptors of runs as the service may have");
	errno = -r;
	return r < 0 ? err_set(e, ERR_PROTOCOL, "the keeper is gone: %s", strerror(errno)) : 0;
}

static int start(void *self, struct run *ret, const struct backend_order *o, struct err *e)
{
	const struct backend_service *b = self;
	int                           pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	r = send_run(b->keeper, pair[1], o, e);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return -1;
	}
	*ret = (struct run){ .sock = pair[0], .pipes = pipes_count(o->stdin_pipe, o->result_pipe) };
	return 0;
}

/* --- figures --- */

static void refresh(struct backend_service *b)
{
	double               now = clock_ms(CLOCK_MONOTONIC);
	struct keeper_answer answer;
	struct keeper_word   word;
	struct err           ignored;

	if (now - b->stats_ms < STATS_AGE_MS)
		return;
	memset(&word, 0, sizeof word);
	word.kind = KEEPER_STATS;
	if (tell(b->keeper, &word, NULL, 0, &ignored) < 0 || hear(b->keeper, KEEPER_STATS, STATS_MS_MAX, &answer, &ignored) < 0) {
		b->stats_ms = now + STATS_PAUSE_MS; /* the figures that we have must do: everybody waits while we wait */
		return;
	}
	b->stats    = answer.stats;
	b->stats_ms = now;
}

static void count(void *self, const struct served_profile *profile, struct backend_counts *ret)
{
	struct backend_service *b = self;

	refresh(b);
	*ret = (struct backend_counts){ .ready = b->stats.ready[profile->index], .building = b->stats.building[profile->index] };
}

static pid_t keeper(void *self)
{
	return ((struct backend_service *)self)->pid;
}

static int lifeline(void *self)
{
	return ((struct backend_service *)self)->keeper;
}

struct backend backend_service(struct backend_service *self)
{
	static const struct backend_ops ops = { .name = "keeper", .is_confinable = true, .start = start, .count = count, .keeper = keeper,
						.lifeline = lifeline };

	return (struct backend){ &ops, self };
}
