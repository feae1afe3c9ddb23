#include "rules_offer.h"

#include "monitor_check.h"
#include "net_config.h"
#include "packet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int send_to_monitor(int monitor, const struct monitor_message *message, const int *fds, size_t n, struct err *e)
{
	int r = packet_send(monitor, message, sizeof *message, fds, n);

	if (r == -EPIPE || r == -ECONNRESET)
		return err_set(e, ERR_SETUP, "the monitor ended; its message is above");
	errno = -r;
	return r < 0 ? err_sys(e, "the monitor cannot be reached") : 0;
}

static int send_setup_message(int monitor, const struct brig_paths *places, enum monitor_mode mode,
			      const struct id_range *ids, struct err *e)
{
	struct monitor_message message;

	memset(&message, 0, sizeof message);
	message.kind           = MONITOR_SETUP;
	message.setup.mode     = mode;
	message.setup.id_base  = ids->base;
	message.setup.id_count = ids->count;
	memcpy(message.setup.store, places->store, sizeof message.setup.store);
	memcpy(message.setup.runtime, places->runtime, sizeof message.setup.runtime);
	return send_to_monitor(monitor, &message, NULL, 0, e);
}

/* --- a profile --- */

static void fill_profile_message(struct monitor_profile *message, const struct served_profile *served, uint64_t ready)
{
	const struct profile *p = &served->profile;

	ready                   = json_object_get(p->source, "ready") ? p->ready : ready;
	message->limits         = p->limits;
	message->ceilings       = p->ceilings;
	message->workspace_exec = p->workspace_exec;
	message->require_all    = p->require == REQUIRE_ALL;
	message->warm           = p->warm;
	message->ready          = (uint32_t)(ready < MONITOR_READY_MAX ? ready : MONITOR_READY_MAX);
	message->zygote_cells   = (uint32_t)p->zygote_runs;
	message->zygote_ms      = (uint32_t)p->zygote_ms;
	/* Names between commas. They fit: profile_parse() checks that. */
	for (size_t i = 0, n = 0; i < json_array_size(p->preload) && n < sizeof message->preload; i++)
		n += (size_t)snprintf(message->preload + n, sizeof message->preload - n, "%s%s", i ? "," : "",
				      json_string_value(json_array_get(p->preload, i)));
	memcpy(message->name, served->name, strlen(served->name)); /* names are shorter */
	memcpy(message->rootfs, p->rootfs, strlen(p->rootfs));
	message->has_network = served->net.proxy_fd >= 0;
	message->has_trust   = served->net.trust_fd >= 0;
	if (!message->has_network)
		return;
	net_policy_collect_ports(p->net, message->listeners.port, &message->listeners.ports);
	memcpy(message->proxy_digest, served->net.digest, sizeof message->proxy_digest);
}

/* Checked here first: the monitor ends at a profile that fails its check, and every run ends with it. */
static int send_profile(int monitor, const struct served_profile *served, uint64_t ready, struct err *e)
{
	const int              fds[] = { served->filter_fd, served->net.proxy_fd, served->net.trust_fd };
	struct monitor_message message;

	memset(&message, 0, sizeof message); /* padding too: the monitor compares the bytes with those of the profile that it has */
	message.kind = MONITOR_PROFILE;
	fill_profile_message(&message.profile, served, ready);
	if (monitor_check_profile(&message.profile, e) < 0)
		return -1;
	return send_to_monitor(monitor, &message, fds, 1u + message.profile.has_network + message.profile.has_trust, e);
}

/* --- all of them --- */

static int exchange_seal_with_monitor(int monitor, uint64_t reading, uint32_t numbers[MONITOR_PROFILES_MAX], struct err *e)
{
	struct monitor_answer  answer;
	struct monitor_message message;
	size_t                 n;

	memset(&message, 0, sizeof message);
	message.kind    = MONITOR_SEAL;
	message.reading = reading;
	if (send_to_monitor(monitor, &message, NULL, 0, e) < 0)
		return -1;
	do
		if (packet_receive(monitor, &answer, sizeof answer, NULL, 0, &n) != sizeof answer)
			return err_set(e, ERR_SETUP, "the monitor ended; its message is above");
	while (answer.seal.reading != reading); /* answers to a reading that was killed */
	memcpy(numbers, answer.seal.number, sizeof answer.seal.number);
	if (answer.err.kind == ERR_NONE)
		return 0;
	*e = answer.err;
	return err_wrap(e, "monitor");
}

int rules_offer_to_monitor(int monitor, const struct brig_paths *places, const enum monitor_mode *mode,
			   uint64_t reading, const struct rules *r,
			   uint32_t numbers[MONITOR_PROFILES_MAX], struct err *e)
{
	if (mode && send_setup_message(monitor, places, *mode, &r->ids, e) < 0)
		return -1;
	for (size_t i = 0; i < r->profiles.n; i++)
		if (send_profile(monitor, r->profiles.item[i], r->config.ready, e) < 0)
			return err_wrap(e, "profile %s", r->profiles.item[i]->name);
	return exchange_seal_with_monitor(monitor, reading, numbers, e);
}

void rules_send_decision(int monitor, bool is_served)
{
	struct monitor_message message;
	struct err             ignored;

	memset(&message, 0, sizeof message);
	message.kind = is_served ? MONITOR_SERVE : MONITOR_DROP;
	(void)!send_to_monitor(monitor, &message, NULL, 0, &ignored);
}
