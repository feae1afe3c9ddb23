/* monitor_proxy.c - brig-proxy of each profile with a network: started, announced to the server, started again */
#define _GNU_SOURCE
#include "monitor_parts.h"

#include "clock.h"
#include "packet.h"

#include <string.h>

enum { BACKOFF_MS = 100, BACKOFF_MS_MAX = 60000, LIVED_MS = 10000, AGAIN_MS = 50, TEND_MS_MAX = 60000 };

/* Does not wait for a server that is not reading: maintain_proxy() tries again. */
static void announce_proxy_to_server(struct monitor *k, uint32_t number)
{
	struct monitored_proxy *p = &k->kept[number].proxy;
	struct monitor_proxy    message;

	memset(&message, 0, sizeof message);
	message.kind    = MONITOR_PROXY;
	message.profile = number;
	p->is_announced = packet_send_nowait(k->server, &message, sizeof message, &p->sock, 1) == 0;
}

static void back_off_proxy_restart(struct monitored_proxy *p)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	if (now - p->began > LIVED_MS)
		p->backoff = 0;
	p->not_before = now + p->backoff;
	p->backoff = p->backoff == 0 ? BACKOFF_MS : p->backoff * 2 > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : p->backoff * 2;
}

int monitor_start_proxy(struct monitor *k, uint32_t number, struct err *e)
{
	struct monitored_profile      *p = &k->kept[number];
	struct monitored_proxy_options w = { .lock_fd = k->own.fd, .group = &k->proxies };

	if (p->proxy.config_fd < 0 || p->proxy.sock >= 0)
		return 0;
	if (k->rootless.kind == ROOTLESS_KEPT) { /* in a service, the profile's share has an id for it */
		w.id      = p->userns.share->slice.base + 1;
		w.lock_fd = k->lock_fd;
	} else if (k->rootless.kind == ROOTLESS_RANGE) {
		w.id = k->own.program_id; /* the second id of a plain user's monitor */
	}
	if (monitored_proxy_start(&p->proxy, &w, e) < 0)
		return -1;
	announce_proxy_to_server(k, number);
	return 0;
}

/* The log has the first two ends in a row, and then nothing until a brig-proxy has lived for LIVED_MS. */
void monitor_handle_proxy_exit(struct monitored_profile *p)
{
	struct err e;

	monitored_proxy_shut_down(&p->proxy);
	back_off_proxy_restart(&p->proxy);
	if (p->proxy.backoff == BACKOFF_MS)
		err_set(&e, ERR_SETUP,
			"brig-proxy of profile %s ended, and the network of its runs with it; another one is started",
			p->plan.name);
	else if (p->proxy.backoff == 2 * BACKOFF_MS)
		err_set(&e, ERR_SETUP, "brig-proxy of profile %s ended again at once: its runs have no network; "
			"another one is started every %d s at last", p->plan.name, BACKOFF_MS_MAX / 1000);
	else
		return;
	monitor_log_error(&e);
}

/* Returns in how many ms to call it again. */
static double maintain_proxy(struct monitor *k, uint32_t number)
{
	struct monitored_proxy *p    = &k->kept[number].proxy;
	double                  left = p->not_before - clock_ms(CLOCK_MONOTONIC);
	struct err              e;

	if (p->sock < 0 && left > 0)
		return left;
	if (p->sock < 0 && monitor_start_proxy(k, number, &e) < 0) {
		monitor_log_error(&e);
		back_off_proxy_restart(p);
		return AGAIN_MS;
	}
	if (!p->is_announced)
		announce_proxy_to_server(k, number);
	return p->is_announced ? TEND_MS_MAX : AGAIN_MS;
}

double monitor_maintain_proxies(struct monitor *k)
{
	double wait = TEND_MS_MAX;

	for (uint32_t i = 0; i < k->monitored_top; i++) {
		const struct monitored_profile *p    = &k->kept[i];
		double                          left = wait;

		if (p->proxy.config_fd >= 0 && p->userns.share && p->state != MONITORED_PROFILE_OFFERED)
			left = maintain_proxy(k, i);
		wait = left < wait ? left : wait;
	}
	return wait;
}
