#define _GNU_SOURCE
#include "service.h"

#include "audit.h"
#include "backend_service.h"
#include "confine.h"
#include "failure.h"
#include "fd.h"
#include "listener.h"
#include "notify.h"
#include "privilege.h"
#include "reception.h"
#include "separate.h"
#include "sub_ids.h"
#include "sweeper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

struct service {
	struct door            door;
	struct audit           audit;
	struct listener        listener;
	struct sweeper         sweeper;
	struct separation      parts;
	struct backend_service keeper;
	struct id_range        ids; /* of cells, when it is a service for others */
	char                   config[PLACE_MAX]; /* "": presets */
	const char            *config_name;       /* as it was before it may have become a copy */
	int                    signals, notify, failure;
	bool                   served; /* clients that wait are the next brigd's, then */
};

/* --- while we are what we were started as --- */

/* systemd gives plain users sockets, too. */
static bool is_host(void)
{
	return geteuid() == 0 || privilege_has_id_caps();
}

/* The host's own file is not for a service that a plain user has of his own. */
static int choose_config(struct service *s, const char *wish, struct err *e)
{
	if (!wish && (!is_host() || (access(PLACE_CONFIG, F_OK) < 0 && errno == ENOENT)))
		return 0;
	s->config_name = wish ? wish : PLACE_CONFIG;
	if (snprintf(s->config, sizeof s->config, "%s", s->config_name) >= (int)sizeof s->config)
		return err_set(e, ERR_BAD_SPEC, "--config %.60s...: path too long", wish);
	return 0;
}

static int open_listener(struct service *s, const struct service_wish *wish, struct err *e)
{
	char path[PLACE_MAX + 16];

	if (!wish->socket && listener_is_given())
		return listener_take(&s->listener, e);
	snprintf(path, sizeof path, "%s/brig.sock", s->door.places.runtime);
	return listener_open(&s->listener, wish->socket ? wish->socket : path, !wish->socket, e);
}

/* As many clients and runs as our own bounds allow. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static int open_as_started(struct service *s, const struct service_wish *wish, struct err *e)
{
	raise_files();
	if (places_find(&s->door.places, e) < 0 || choose_config(s, wish->config, e) < 0)
		return -1;
	if (listener_is_given())
		s->failure = failure_open(&s->door.places, is_host());
	if (notify_open(&s->notify, e) < 0 || open_listener(s, wish, e) < 0)
		return -1;
	return sweeper_start(&s->sweeper, &s->listener, e);
}

/* --- as the door, without privilege --- */

/* Those of the file are the administrator's promise; what other launchers of this host take they may not touch. */
static int choose_ids(const struct service *s, struct id_range *ret, struct err *e)
{
	const struct config_ids *wish = &s->door.config.ids;
	struct id_range          others;

	*ret = s->parts.ids;
	if (!wish->count || s->parts.mode != KEEPER_SERVICE)
		return 0;
	*ret = (struct id_range){ (uint32_t)wish->base, (uint32_t)wish->count };
	if (sub_ids_of_root(&others, e) < 0)
		return -1;
	if (ret->base < others.base + others.count && others.base < ret->base + ret->count)
		return err_set(e, ERR_BAD_SPEC, "ids: %u to %u are those that brig run of root takes from; name others, or none", others.base, others.base + others.count - 1);
	return 0;
}

static int load_rules(struct service *s, struct err *e)
{
	struct door *d = &s->door;

	if ((*s->config ? config_load(&d->config, s->config, s->config_name, e) : config_parse(&d->config, "{}", 2, e)) < 0)
		return -1;
	if (choose_ids(s, &s->ids, e) < 0)
		return err_wrap(e, "%s", s->config_name);
	if (d->config.access_rows)
		return access_build(&d->access, &d->config, e) < 0 ? err_wrap(e, "%s", s->config_name) : 0;
	if (s->parts.mode == KEEPER_SERVICE)
		access_preset(&d->access);
	else
		access_own(&d->access, geteuid());
	return 0;
}

static int open_audit(struct service *s, struct err *e)
{
	const struct config_audit *wish = &s->door.config.audit;
	struct audit_plan          plan = { wish->file, wish->max_bytes, (unsigned)wish->keep, JOURNAL_SOCKET, -1 };

	umask(027); /* the folder's group may read what is written there; nothing else is made from here on */
	if (audit_open(&s->audit, &plan, e) < 0)
		return *s->config ? err_wrap(e, "%s", s->config_name) : -1;
	s->door.audit = &s->audit;
	return 0;
}

static int open_backend(struct service *s, struct err *e)
{
	struct backend_service_wishes wishes = { &s->parts, &s->door.places, &s->ids, &s->door.profiles, s->door.config.ready };

	if (backend_service_open(&s->keeper, &wishes, e) < 0)
		return -1;
	s->door.backend = backend_service(&s->keeper);
	return 0;
}

static void on_left_out(void *context, const char *name, const struct err *why)
{
	struct door *d = context;
	struct err   e = *why;

	places_name_as_known(e.text);
	log_say(&d->log, "profile %s is left out: %s", name, e.text);
}

/* A signal is a word to be read in its turn. Not before the keeper is there, which would inherit that. */
static int open_signals(int *ret, struct err *e)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret < 0 ? err_sys(e, "signalfd") : 0;
}

static int open_as_door(struct service *s, struct err *e)
{
	struct door *d = &s->door;

	if (s->parts.note[0])
		log_say(&d->log, "%s", s->parts.note);
	if (open_signals(&s->signals, e) < 0 || door_open(d, e) < 0 || open_audit(s, e) < 0)
		return -1;
	profile_set_load(&d->profiles, on_left_out, d);
	return open_backend(s, e);
}

static int serve(struct service *s, struct err *e)
{
	struct door           *d  = &s->door;
	struct reception_posts at = { s->listener.fd, s->signals, s->notify };

	if (d->backend.ops->is_confinable && confine_door(audit_folder(d->audit), &d->confinement, e) < 0)
		return -1;
	s->served = true;
	return reception_serve(d, &at, e);
}

/* --- from beginning to end --- */

static enum service_end run_service(struct service *s, const struct service_wish *wish, struct err *e)
{
	if (open_as_started(s, wish, e) < 0 || separate(&s->parts, &s->door.places, s->config, e) < 0)
		return SERVICE_FAILED;
	if (load_rules(s, e) < 0)
		return SERVICE_MISCONFIGURED;
	return open_as_door(s, e) < 0 || serve(s, e) < 0 ? SERVICE_FAILED : SERVICE_ENDED;
}

static void close_all(struct service *s)
{
	listener_close(&s->listener);
	door_close(&s->door);
	audit_close(s->door.audit);
	backend_service_close(&s->keeper);
	fd_closep(&s->parts.ids_held);
	fd_closep(&s->signals);
	fd_closep(&s->notify);
	fd_closep(&s->failure);
	sweeper_end(&s->sweeper);
}

enum service_end service_main(const struct service_wish *wish, struct err *e)
{
	struct service   s = { .listener = LISTENER_NONE, .sweeper = SWEEPER_NONE, .parts = { .ids_held = -1 }, .keeper = BACKEND_SERVICE_NONE,
			       .signals = -1, .notify = -1, .failure = -1 };
	enum service_end end;

	door_init(&s.door);
	end = run_service(&s, wish, e);
	if (end != SERVICE_ENDED) {
		places_name_as_known(e->text);
		failure_tell(s.failure, s.served ? NULL : &s.listener, e);
	}
	close_all(&s);
	return end;
}
