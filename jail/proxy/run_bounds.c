/* run_bounds.c - how many descriptors, connections and bytes a run may use (run.h) */
#include "limits.h"
#include "proxy.h"

#include <inttypes.h>

/* Descriptors of a connection (two sockets, a pipe for each direction), of a run without its connections, and of the
 * process itself. */
enum {
	FDS_OF_ONE = 6,
	FDS_OF_RUN = NET_LISTEN_MAX + DNS_TALKS_MAX + LOOKUP_SOCKETS_MAX + 2,
	FDS_OTHER  = 2 * PIPE_POOL_KEPT + 64,
};

enum { CONNECTIONS_OF_USER = 2048 }; /* of all runs of one user in this profile */

/* Descriptors for connections and runs that do not exist yet. */
static uint64_t descriptors_left(const struct proxy *proxy)
{
	uint64_t other = proxy->descriptors / 2 < FDS_OTHER ? proxy->descriptors / 2 : FDS_OTHER;
	uint64_t used = other + proxy->serves * FDS_OF_RUN + proxy->open * FDS_OF_ONE;

	return used < proxy->descriptors ? proxy->descriptors - used : 0;
}

static int check_range(const struct field *field, const char *name, uint64_t value, struct err *e)
{
	if (value >= field->min && value <= field->max)
		return 0;
	return err_set(e, ERR_BROKEN, "%s is %" PRIu64 ", and must be from %" PRIu64 " to %" PRIu64, name, value,
		       field->min, field->max);
}

int run_check_message_bounds(const struct proxy *proxy, const struct proxy_message *message, struct err *e)
{
	if (check_range(&limits_fields[LIMIT_net_connections], "net_connections", message->connections_max, e) < 0 ||
	    check_range(&limits_fields[LIMIT_cpus], "cpus in thousandths", message->cpus, e) < 0)
		return -1;
	if (descriptors_left(proxy) < FDS_OF_RUN + FDS_OF_ONE)
		return err_set(e, ERR_LIMIT,
			       "no descriptors are left for it (LimitNOFILE= of brigd.service, or ulimit -n)");
	return 0;
}

size_t run_bytes_allowed(struct run *run, enum net_reason *reason)
{
	uint64_t left = run->bytes < run->bytes_max ? run->bytes_max - run->bytes : 0;
	size_t   now;

	*reason = left ? NET_REASON_NONE : NET_REASON_TOO_MUCH;
	if (left == 0)
		return 0;
	now = byte_rate_left(&run->rate);
	return now < left ? now : (size_t)left;
}

void run_spend_bytes(struct run *run, size_t bytes)
{
	run->bytes += bytes;
	byte_rate_spend(&run->rate, bytes);
}

enum net_reason run_check_new_connection(const struct run *run)
{
	uint64_t more = descriptors_left(run->proxy) / FDS_OF_ONE, of_user = 0;
	const struct run *other;

	LIST_FOREACH(other, &run->proxy->runs, link)
	of_user += other->user == run->user ? other->open : 0;
	if (run->open >= run->connections_max || of_user >= CONNECTIONS_OF_USER)
		return NET_REASON_TOO_MANY;
	if (run->bytes >= run->bytes_max)
		return NET_REASON_TOO_MUCH;
	return more == 0 || run->open > more ? NET_REASON_NO_MEMORY : NET_REASON_NONE;
}
