#include "named_sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOST_KEPT = 256 }; /* lost sessions whose owners were not told; if there are more the oldest is forgotten */

struct named_sessions *named_sessions_create(struct mcp *m)
{
	struct named_sessions *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->mcp = m;
	TAILQ_INIT(&all->all);
	return all;
}

void named_sessions_destroy(struct named_sessions *all)
{
	struct named_session *s;

	if (!all)
		return;
	while ((s = TAILQ_FIRST(&all->all)))
		named_session_destroy(s);
	free(all);
}

bool named_sessions_are_offered(const struct settings *s)
{
	return s->sessions > 0;
}

struct named_session *named_sessions_find(struct mcp *m, const char *owner, const char *name)
{
	struct named_session *s;

	TAILQ_FOREACH(s, &m->sessions->all, link)
		if (!s->is_over && strcmp(s->owner, owner) == 0 && strcmp(s->name, name) == 0)
			break;
	return s;
}

/* Counts the open ones. *stale: the oldest of the lost ones if there are too many of these, else NULL. */
static size_t count(const struct named_sessions *all, struct named_session **stale)
{
	struct named_session *s, *oldest = NULL;
	size_t                open = 0, lost = 0;

	TAILQ_FOREACH(s, &all->all, link) {
		bool is_lost = s->state == SESSION_CLOSED && TAILQ_EMPTY(&s->uses);

		open += !is_lost;
		lost += is_lost;
		if (is_lost && (!oldest || s->lost_ms < oldest->lost_ms))
			oldest = s;
	}
	*stale = lost > LOST_KEPT ? oldest : NULL;
	return open;
}

struct named_session *named_sessions_make(struct mcp *m, const char *owner, const char *name, struct err *e)
{
	struct named_session *s    = named_sessions_find(m, owner, name), *stale;
	size_t                open = count(m->sessions, &stale);
	char                  names[200];

	if (stale && stale != s)
		named_session_destroy(stale);
	if (s && s->state != SESSION_CLOSED)
		return s;
	if (open >= m->settings->sessions) {
		named_sessions_names(m, owner, names, sizeof names);
		err_set(e, ERR_DENIED, "session: %zu are open, which is the most here; end one with end_session%s%s", open, *names ? ": " : ", or try again later", names);
		return NULL;
	}
	if (!s && !(s = named_session_create(m, owner, name)))
		err_set(e, ERR_LIMIT, "out of memory");
	return s;
}

/* Each search begins at the first one, as the end of one may end others. */
void named_sessions_end_all(struct mcp *m, const char *owner)
{
	struct named_session *s;

	do {
		TAILQ_FOREACH(s, &m->sessions->all, link)
			if (!s->is_over && strcmp(s->owner, owner) == 0)
				break;
		if (s)
			named_session_end(s);
	} while (s);
}

char *named_sessions_names(struct mcp *m, const char *owner, char *buf, size_t len)
{
	const struct named_session *s;
	size_t                      at = 0;

	*buf = 0;
	TAILQ_FOREACH(s, &m->sessions->all, link)
		if (!s->is_over && s->state != SESSION_CLOSED && strcmp(s->owner, owner) == 0 && at + strlen(s->name) + 3 < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", s->name);
	return buf;
}
