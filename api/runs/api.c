#include "api.h"

#include "api_run.h"

#include <sys/resource.h>

/* A run has five, a request one; a shortage of them could break the connection to brigd, and end all runs. */
static void raise_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int api_open(struct api *ret, const struct api_settings *settings, struct err *e)
{
	*ret = (struct api){ .settings = settings };
	TAILQ_INIT(&ret->waiting);
	TAILQ_INIT(&ret->under_way);
	TAILQ_INIT(&ret->sessions);
	TAILQ_INIT(&ret->closing);
	ret->pump = (struct loop_timer){ .due = api_runs_pump, .owner = ret };
	ret->late = (struct loop_timer){ .due = api_runs_pump, .owner = ret };
	raise_descriptors();
	if (loop_open(&ret->loop, e) < 0)
		return -1;
	ret->link = brigd_link_create(&ret->loop, (enum brigd_want)settings->server);
	if (ret->link)
		return 0;
	loop_close(&ret->loop);
	return err_set(e, ERR_LIMIT, "out of memory");
}

void api_close(struct api *a)
{
	struct api_session *s;

	api_runs_destroy(a);
	while ((s = TAILQ_FIRST(&a->sessions))) {
		s->uses = 0;
		api_session_close(s);
	}
	while ((s = TAILQ_FIRST(&a->closing)))
		api_session_forget(s);
	loop_timer_clear(&a->loop, &a->pump);
	loop_timer_clear(&a->loop, &a->late);
	brigd_link_destroy(a->link);
	loop_close(&a->loop);
}
