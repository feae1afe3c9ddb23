#include "run_talk.h"

#include "fd.h"

#include <fcntl.h>
#include <string.h>

static const char *text_of(const json_t *event, const char *key)
{
	return json_string_value(json_object_get(event, key));
}

static uint64_t number_of(const json_t *event, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(event, key));
}

/*
 * Not blocking: the program can open its pipe again, read back the bytes that poll() has reported, and hold a writing
 * end open (stream.h). Streams with names that a later brigd may add stay in d, which closes them.
 */
static void handle_start(const struct run_talk *to, void *owner, struct datagram *d)
{
	static const char *const ours[RUN_STREAMS] = { "stdout", "stderr", "result", "stdin", "tools" };
	const json_t            *names             = json_object_get(d->answer.source, "streams");
	struct run_start         start             = { .fd = { -1, -1, -1, -1, -1 } };

	start.run          = text_of(d->answer.source, "run");
	start.output_bytes = number_of(d->answer.source, "output_bytes");
	for (size_t i = 0; i < json_array_size(names) && i < d->fds; i++)
		for (size_t k = 0; k < RUN_STREAMS; k++)
			if (start.fd[k] < 0 && strcmp(json_string_value(json_array_get(names, i)), ours[k]) == 0) {
				fcntl(d->fd[i], F_SETFL, O_NONBLOCK);
				start.fd[k] = fd_take(&d->fd[i]);
			}
	to->started(owner, &start);
	for (size_t k = 0; k < RUN_STREAMS; k++)
		fd_closep(&start.fd[k]);
}

static void handle_event(const struct run_talk *to, void *owner, struct datagram *d)
{
	const json_t *event = d->answer.source;

	switch (d->answer.event) {
	case EVENT_waiting:
		if (to->waiting)
			to->waiting(owner, text_of(event, "run"), text_of(event, "why"));
		return;
	case EVENT_opened:
		if (to->opened)
			to->opened(owner, event);
		return;
	case EVENT_started:
		if (to->started)
			handle_start(to, owner, d);
		return;
	case EVENT_limit:
		if (to->limit && json_is_true(json_object_get(event, "ends")))
			to->limit(owner, text_of(event, "name"), number_of(event, "value"));
		return;
	case EVENT_ended:
		to->ended(owner, event);
		return;
	case EVENT_COUNT:
		return;
	}
}

void run_talk_handle(const struct run_talk *to, void *owner, struct datagram *d)
{
	switch (d->answer.kind) {
	case ANSWER_EVENT:
		handle_event(to, owner, d);
		return;
	case ANSWER_ERROR:
		to->refused(owner, d->answer.source);
		return;
	case ANSWER_REPLY: /* to a cancel */
		return;
	}
}

enum datagram_answer run_talk_receive(const struct run_talk *to, void *owner, int sock, struct err *e)
{
	scoped_datagram      d      = DATAGRAM_NONE;
	enum datagram_answer answer = datagram_receive(sock, &d, e);

	if (answer == DATAGRAM_RECEIVED)
		run_talk_handle(to, owner, &d);
	return answer;
}

json_t *run_talk_cancel(const char *run, const char *reason)
{
	return json_pack("{ss ss ss*}", "op", "cancel", "run", run, "reason", reason);
}
