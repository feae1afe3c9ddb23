#include "metrics_page.h"

#include "datagram.h"
#include "loop.h"
#include "brigd_connection.h"
#include "service_metrics.h"

#include <errno.h>
#include <sys/socket.h>

struct question {
	int      sock;
	unsigned ms;
	int64_t  until_ms;
};

/* Consumes the reference to the request. */
static json_t *metrics_exchange(const struct question *q, json_t *request, struct err *e)
{
	bool    late  = loop_now_ms() > q->until_ms;
	json_t *reply = late ? NULL : datagram_exchange(q->sock, request, NULL, e);

	json_decref(request);
	if (late || (!reply && e->errnum == EAGAIN))
		err_set(e, ERR_LIMIT, "brigd did not answer within %u ms", q->ms);
	return reply;
}

/* A profile may be removed between stats and metrics: its request is then refused, and it is left out. */
static int exchange_run_lists(const struct question *q, const json_t *profiles, json_t *ret, struct err *e)
{
	for (size_t i = 0; i < json_array_size(profiles); i++) {
		json_t *name  = json_object_get(json_array_get(profiles, i), "name");
		json_t *reply = metrics_exchange(q, json_pack("{ss sO}", "op", "metrics", "profile", name), e);

		if (!reply && e->kind != ERR_DENIED)
			return -1;
		if (reply)
			json_array_append_new(ret, reply);
	}
	return 0;
}

int metrics_page_print(FILE *out, unsigned ms, struct err *e)
{
	struct timeval  timeout = { .tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000 };
	struct brigd    server  = BRIGD_NONE;
	struct question q;
	scoped_json    *stats = NULL, *runs = json_array();
	int             r;

	if (brigd_connect_within(&server, BRIGD_SERVICE, ms, e) < 0)
		return -1;
	(void)setsockopt(server.sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	q     = (struct question){ server.sock, ms, loop_now_ms() + ms };
	stats = metrics_exchange(&q, json_pack("{ss}", "op", "stats"), e);
	r     = stats ? exchange_run_lists(&q, json_object_get(stats, "profiles"), runs, e) : -1;
	if (r == 0)
		service_metrics_print(stats, runs, out);
	(void)brigd_close(&server);
	return r;
}
