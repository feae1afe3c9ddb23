#include "telling.h"

#include "keeper_check.h"
#include "packet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int tell(int keeper, const struct keeper_word *word, const int *fds, size_t n, struct err *e)
{
	int r = packet_send(keeper, word, sizeof *word, fds, n);

	if (r == -EPIPE || r == -ECONNRESET)
		return err_set(e, ERR_SETUP, "the keeper ended; its message is above");
	errno = -r;
	return r < 0 ? err_sys(e, "the keeper cannot be reached") : 0;
}

static int tell_kind(int keeper, uint32_t kind, struct err *e)
{
	struct keeper_word word;

	memset(&word, 0, sizeof word);
	word.kind = kind;
	return tell(keeper, &word, NULL, 0, e);
}

static int tell_setup(int keeper, const struct telling_setup *s, const struct id_range *ids, struct err *e)
{
	struct keeper_word word;

	memset(&word, 0, sizeof word);
	word.kind           = KEEPER_SETUP;
	word.setup.mode     = s->mode;
	word.setup.id_base  = ids->base;
	word.setup.id_count = ids->count;
	memcpy(word.setup.store, s->places->store, sizeof word.setup.store);
	memcpy(word.setup.runtime, s->places->runtime, sizeof word.setup.runtime);
	return tell(keeper, &word, NULL, 0, e);
}

/* --- a profile --- */

static uint64_t ready_of(const struct profile *p, uint64_t otherwise)
{
	uint64_t ready = json_object_get(p->source, "ready") ? p->ready : otherwise;

	return ready < KEEPER_READY_MAX ? ready : KEEPER_READY_MAX;
}

/* Names between commas. They fit: profile_parse() checks that. */
static void fill_preload(char text[KEEPER_PRELOAD_MAX], const json_t *names)
{
	for (size_t i = 0, n = 0; i < json_array_size(names) && n < KEEPER_PRELOAD_MAX; i++)
		n += (size_t)snprintf(text + n, KEEPER_PRELOAD_MAX - n, "%s%s", i ? "," : "", json_string_value(json_array_get(names, i)));
}

static void fill(struct keeper_profile *word, const struct served_profile *served, uint64_t ready)
{
	const struct profile *p = &served->profile;

	word->limits         = p->limits;
	word->ceilings       = p->ceilings;
	word->workspace_exec = p->workspace_exec;
	word->require_all    = p->require == REQUIRE_ALL;
	word->warm           = p->warm;
	word->ready          = (uint32_t)ready_of(p, ready);
	word->zygote_cells   = (uint32_t)p->zygote_runs;
	word->zygote_ms      = (uint32_t)p->zygote_ms;
	fill_preload(word->preload, p->preload);
	memcpy(word->name, served->name, strlen(served->name)); /* names are shorter */
	memcpy(word->rootfs, p->rootfs, strlen(p->rootfs));
}

/* Checked here first: the keeper ends at a profile that fails its check, and every run ends with it. */
static int tell_profile(int keeper, const struct served_profile *served, uint64_t ready, struct err *e)
{
	struct keeper_word word;

	memset(&word, 0, sizeof word); /* padding too: it compares */
	word.kind = KEEPER_PROFILE;
	fill(&word.profile, served, ready);
	return keeper_check_profile(&word.profile, e) < 0 ? -1 : tell(keeper, &word, &served->filter_fd, 1, e);
}

/* --- all of them --- */

static int receive_answer(int keeper, uint64_t reading, struct keeper_answer *ret, struct err *e)
{
	size_t n;

	do
		if (packet_receive(keeper, ret, sizeof *ret, NULL, 0, &n) != sizeof *ret)
			return err_set(e, ERR_SETUP, "the keeper ended; its message is above");
	while (ret->seal.reading != reading); /* answers to a reading that was killed */
	return 0;
}

static int seal(int keeper, uint64_t reading, uint32_t numbers[KEEPER_PROFILES_MAX], struct err *e)
{
	struct keeper_answer answer;
	struct keeper_word   word;

	memset(&word, 0, sizeof word);
	word.kind    = KEEPER_SEAL;
	word.reading = reading;
	if (tell(keeper, &word, NULL, 0, e) < 0 || receive_answer(keeper, reading, &answer, e) < 0)
		return -1;
	memcpy(numbers, answer.seal.number, sizeof answer.seal.number);
	if (answer.err.kind == ERR_NONE)
		return 0;
	*e = answer.err;
	return err_wrap(e, "keeper");
}

int telling_offer(int keeper, const struct telling_setup *setup, uint64_t reading, const struct rules *r, uint32_t numbers[KEEPER_PROFILES_MAX],
		  struct err *e)
{
	if (setup && tell_setup(keeper, setup, &r->ids, e) < 0)
		return -1;
	for (size_t i = 0; i < r->profiles.n; i++)
		if (tell_profile(keeper, r->profiles.item[i], r->config.ready, e) < 0)
			return err_wrap(e, "profile %s", r->profiles.item[i]->name);
	return seal(keeper, reading, numbers, e);
}

void telling_serve(int keeper)
{
	struct err ignored;

	(void)!tell_kind(keeper, KEEPER_SERVE, &ignored);
}

void telling_drop(int keeper)
{
	struct err ignored;

	(void)!tell_kind(keeper, KEEPER_DROP, &ignored);
}
