/* session_clock.c - when a session ends or is frozen by itself */
#include "clock.h"
#include "served_run.h"
#include "session.h"

#include <math.h>

static double ms_until(double end_ms, double now_ms)
{
	return end_ms > now_ms ? end_ms - now_ms : 0;
}

double session_idle_left(const struct session *s, double now_ms)
{
	return s->calls_len ? (double)s->limits.idle_ms : ms_until(s->used_ms + (double)s->limits.idle_ms, now_ms);
}

/* Requested work beside calls keeps a session from being frozen; processes that calls have left behind do not. */
double session_freeze_left(const struct session *s, double now_ms)
{
	uint64_t freeze_ms = s->run->server->config.freeze_ms;

	if (s->state != SESSION_OPEN || s->is_to_be_frozen || s->calls_len || s->background || !freeze_ms)
		return HUGE_VAL;
	return ms_until(s->used_ms + (double)freeze_ms, now_ms);
}

double session_lifetime_left(const struct session *s, double now_ms)
{
	return ms_until(s->opened_ms + (double)s->limits.lifetime_ms, now_ms);
}

void session_set_timer(struct session *s)
{
	double now = clock_ms(CLOCK_MONOTONIC), left = session_lifetime_left(s, now);
	double idle = s->calls_len ? HUGE_VAL : session_idle_left(s, now), freeze = session_freeze_left(s, now);

	if (s->state != SESSION_OPEN) /* a session that closes uses the timer for CLOSE_MS_MAX */
		return;
	left = idle < left ? idle : left;
	left = freeze < left ? freeze : left;
	loop_timer_set(&s->run->server->loop, &s->timer, (int64_t)left + 1);
}

void session_note_use(struct session *s)
{
	s->used_ms = clock_ms(CLOCK_MONOTONIC);
	session_set_timer(s);
}
