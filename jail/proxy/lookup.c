#define _GNU_SOURCE
#include "lookup.h"

#include <ares.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

enum { TRY_MS = 2500, TRIES = 3, IDLE_MS = 60 * 1000 };

struct lookup_socket {
	struct loop_source source; /* fd -1: free */
	struct resolver   *channel;
};

/* A c-ares channel with the settings that resolv.conf had when it was opened. An old one is destroyed after its last
 * question. */
struct resolver {
	struct lookups *all;
	ares_channel    ares;
	size_t          pending;
	bool            is_old;
};

/* Files that c-ares reads once for a channel. (It reads /etc/hosts for each name.) */
static const char *const files[] = { "/etc/resolv.conf", "/etc/nsswitch.conf" };

/* Changes when the file is replaced or written. */
struct version {
	dev_t           device;
	ino_t           inode;
	struct timespec written;
};

struct lookups {
	struct loop         *loop, *timers;
	struct loop_timer    timer;
	struct resolver     *now;
	struct resolver     *old; /* at most one: a second change waits until it is destroyed */
	struct version       read[ARRAY_LEN(files)];
	struct lookup_socket socket[LOOKUP_SOCKETS_MAX];
};

struct lookup {
	struct resolver *channel;
	lookup_done      done; /* NULL: forgotten */
	void            *owner;
	struct lookup  **slot;
	uint16_t         port;
};

/* --- sockets and time of c-ares in our loop --- */

static void set_ares_timer(struct lookups *all)
{
	struct timeval most = { IDLE_MS / 1000, 0 }, room, *next = ares_timeout(all->now->ares, &most, &room);
	int64_t        ms = next->tv_sec * 1000 + next->tv_usec / 1000 + 1;

	if (all->now->pending || all->old)
		loop_timer_set(all->timers, &all->timer, all->old && ms > TRY_MS ? TRY_MS : ms);
	else
		loop_timer_clear(all->timers, &all->timer);
}

static void destroy_old_channel(struct lookups *all)
{
	struct resolver *old = all->old;

	if (!old || old->pending)
		return;
	all->old = NULL;
	ares_destroy(old->ares);
	free(old);
}

static void on_ares_timeout(void *owner)
{
	struct lookups *all = owner;

	ares_process_fd(all->now->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	if (all->old)
		ares_process_fd(all->old->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	destroy_old_channel(all);
	set_ares_timer(all);
}

static void on_ares_socket(void *owner)
{
	struct lookup_socket *s   = owner;
	struct lookups       *all = s->channel->all;

	ares_process_fd(s->channel->ares, s->source.fd, s->source.fd);
	destroy_old_channel(all);
	set_ares_timer(all);
}

static struct lookup_socket *find_lookup_socket(struct lookups *all, int fd)
{
	for (size_t i = 0; i < LOOKUP_SOCKETS_MAX; i++)
		if (all->socket[i].source.fd == fd)
			return &all->socket[i];
	return NULL;
}

static void on_ares_socket_state(void *owner, ares_socket_t fd, int reads, int writes)
{
	struct resolver      *channel = owner;
	struct loop          *loop    = channel->all->loop;
	struct lookup_socket *s       = find_lookup_socket(channel->all, fd);
	uint32_t              events  = (reads ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0);
	struct err            e;

	if (s && events) {
		loop_set_events(loop, &s->source, events);
	} else if (s) {
		loop_remove(loop, &s->source);
		s->source.fd = -1;
	} else if (events && (s = find_lookup_socket(channel->all, -1))) {
		*s = (struct lookup_socket){ .source = { fd, on_ares_socket, s }, .channel = channel };
		if (loop_add_events(loop, &s->source, events, &e) < 0)
			s->source.fd = -1; /* the question times out */
	}
}

/* --- channels --- */

/* True: a file has changed since the last call. */
static bool config_files_changed(struct lookups *all)
{
	bool changed = false;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct version *read = &all->read[i];
		struct stat     st   = { 0 };

		(void)stat(files[i], &st); /* a missing file has version 0 */
		changed |= st.st_dev != read->device || st.st_ino != read->inode ||
			   st.st_mtim.tv_sec != read->written.tv_sec || st.st_mtim.tv_nsec != read->written.tv_nsec;
		*read = (struct version){ st.st_dev, st.st_ino, st.st_mtim };
	}
	return changed;
}

static struct resolver *resolver_open(struct lookups *all, struct err *e)
{
	struct resolver    *channel = calloc(1, sizeof *channel);
	struct ares_options options = {
		.flags              = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout            = TRY_MS,
		.tries              = TRIES,
		.sock_state_cb      = on_ares_socket_state,
		.sock_state_cb_data = channel,
	};
	int r;

	if (!channel) {
		err_set(e, ERR_SETUP, "no memory");
		return NULL;
	}
	channel->all = all;
	r            = ares_init_options(&channel->ares, &options,
					 ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
	if (r != ARES_SUCCESS) {
		err_set(e, ERR_SETUP, "c-ares: %s", ares_strerror(r));
		free(channel);
		return NULL;
	}
	return channel;
}

static void refresh_channel(struct lookups *all)
{
	struct resolver *fresh;
	struct err       e;

	if (all->old || !config_files_changed(all))
		return;
	fresh = resolver_open(all, &e);
	if (!fresh) {
		all->read[0] = (struct version){ 0 }; /* so that the next lookup tries again */
		return;
	}
	all->old = all->now;
	all->now = fresh;
	destroy_old_channel(all);
}

struct lookups *lookups_create(struct loop *loop, struct loop *timers, struct err *e)
{
	struct lookups *all = calloc(1, sizeof *all);

	if (!all || ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
		err_set(e, ERR_SETUP, "c-ares does not start");
		free(all);
		return NULL;
	}
	all->loop   = loop;
	all->timers = timers;
	all->timer  = (struct loop_timer){ .due = on_ares_timeout, .owner = all };
	for (size_t i = 0; i < LOOKUP_SOCKETS_MAX; i++)
		all->socket[i].source.fd = -1;
	(void)config_files_changed(all);
	all->now = resolver_open(all, e);
	if (!all->now) {
		free(all);
		return NULL;
	}
	return all;
}

void lookups_destroy(struct lookups *all)
{
	if (!all)
		return;
	loop_timer_clear(all->timers, &all->timer);
	ares_destroy(all->now->ares);
	if (all->old)
		ares_destroy(all->old->ares);
	free(all->old);
	free(all->now);
	free(all);
	ares_library_cleanup();
}

/* --- one name --- */

socklen_t address_len(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof a->four : sizeof a->six;
}

static void copy_addresses_of_family(const struct lookup *l, const struct ares_addrinfo *info, int family,
				     union address *ret, size_t *n)
{
	for (const struct ares_addrinfo_node *node = info->nodes; node; node = node->ai_next) {
		union address *to = &ret[*n];

		if (node->ai_family != family || *n == LOOKUP_ADDRESSES_MAX)
			continue;
		*to = (union address){ 0 };
		memcpy(to, node->ai_addr, family == AF_INET ? sizeof to->four : sizeof to->six);
		if (family == AF_INET)
			to->four.sin_port = htons(l->port);
		else
			to->six.sin6_port = htons(l->port);
		(*n)++;
	}
}

static void on_ares_answer(void *owner, int status, int timeouts, struct ares_addrinfo *info)
{
	struct lookup *l = owner;
	union address  addresses[LOOKUP_ADDRESSES_MAX];
	size_t         n = 0;

	(void)timeouts;
	if (status == ARES_SUCCESS && info) {
		copy_addresses_of_family(l, info, AF_INET, addresses, &n);
		copy_addresses_of_family(l, info, AF_INET6, addresses, &n);
	}
	ares_freeaddrinfo(info);
	l->channel->pending--;
	if (l->done) {
		*l->slot = NULL;
		l->done(l->owner, addresses, n);
	}
	free(l);
}

void lookup_start(struct lookups *all, const char *name, uint16_t port, lookup_done done, void *owner,
		  struct lookup **slot)
{
	static const struct ares_addrinfo_hints hints = { .ai_flags    = ARES_AI_NOSORT,
							  .ai_family   = AF_UNSPEC,
							  .ai_socktype = SOCK_STREAM };
	struct lookup                          *l     = calloc(1, sizeof *l);

	if (!l) {
		done(owner, NULL, 0);
		return;
	}
	refresh_channel(all);
	*l    = (struct lookup){ .channel = all->now, .done = done, .owner = owner, .slot = slot, .port = port };
	*slot = l;
	all->now->pending++;
	ares_getaddrinfo(all->now->ares, name, NULL, &hints, on_ares_answer, l);
	set_ares_timer(all);
}

void lookup_detach(struct lookup *l)
{
	if (l)
		l->done = NULL;
}
