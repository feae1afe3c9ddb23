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
#include "reload.h"
#include "separate.h"
#include "service_loop.h"
#include "sweeper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

struct service {
	struct server          server;
	struct audit           audit;
	struct listener        listener;
	struct sweeper         sweeper;
	struct reader_files    files;
	struct separation      parts;
	struct backend_service monitor;
	struct reload          reload;
	int                    signals, notify, failure;
	/* it has served clients: those that wait at the socket are left to the next brigd */
	bool                   served;
};

/* --- with the rights that brigd was started with --- */

static int open_service_listener(struct service *s, const struct service_options *wanted, struct err *e)
{
	char path[PATH_SIZE + 16];

	if (!wanted->socket && listener_is_given_by_systemd())
		return listener_adopt_systemd_socket(&s->listener, e);
	snprintf(path, sizeof path, "%s/brig.sock", s->server.places.runtime);
	return listener_open(&s->listener, wanted->socket ? wanted->socket : path, !wanted->socket, e);
}

static int open_with_start_privileges(struct service *s, const struct service_options *wanted, struct err *e)
{
	/*
	 * Is it the host's service? A plain user's own can have a socket of systemd, too, but does not read the host's
	 * configuration.
	 */
	const bool    is_host = geteuid() == 0 || privilege_has_id_caps();
	const char   *config  = wanted->config ? wanted->config : is_host ? PLACE_CONFIG : NULL;
	struct rlimit files;

	/* Only brigd's own limits shall bound the number of clients and runs. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (brig_paths_find(&s->server.places, e) < 0)
		return -1;
	s->files = (struct reader_files){ .is_optional = !wanted->config, .name = config };
	if (config && snprintf(s->files.config, sizeof s->files.config, "%s", config) >= (int)sizeof s->files.config)
		return err_set(e, ERR_BAD_SPEC, "--config %.60s...: path too long", config);
	if (listener_is_given_by_systemd())
		s->failure = failure_open_file(&s->server.places, is_host);
	if (systemd_notify_open(&s->notify, e) < 0 || open_service_listener(s, wanted, e) < 0)
		return -1;
	return sweeper_start(&s->sweeper, &s->listener, e);
}

/* --- as the server, without privilege --- */

/* Takes the reader's first rules. *is_config: the configuration cannot be used. */
static int receive_first_rules(struct service *s, bool *is_config, struct err *e)
{
	struct reader     *r     = &s->parts.reader;
	scoped_rules       rules = { .ids = { 0 } };
	scoped_fd          fd    = -1;
	struct reader_message message;

	if (!reader_send(r, READER_READ, 0) || !reader_receive(r, &message, &fd))
		return err_set(e, ERR_SETUP, "the reader ended; its message is above");
	*is_config = message.kind == READER_REFUSED && message.is_config;
	*e         = message.err;
	if (message.kind != READER_RULES || rules_from_sealed_file(&rules, fd, &s->server.places, e) < 0)
		return -1;
	server_set_rules(&s->server, &rules);
	return reader_send(r, READER_TAKEN, 0) ? 0 : err_set(e, ERR_SETUP, "the reader ended; its message is above");
}

static int open_service_audit(struct service *s, struct err *e)
{
	const struct config_audit *wanted = &s->server.config.audit;
	struct audit_plan plan = { wanted->file, wanted->max_bytes, (unsigned)wanted->keep, JOURNAL_SOCKET, -1 };

	umask(027); /* the folder's group may read what is written there; nothing else is made from here on */
	if (audit_open(&s->audit, &plan, e) < 0)
		return *s->files.config ? err_wrap(e, "%s", s->files.name) : -1;
	s->server.audit = &s->audit;
	return 0;
}

/*
 * Signals are read from a descriptor. Called after the other processes were forked, which would inherit the blocked
 * mask.
 */
static int open_service_signalfd(int *ret, struct err *e)
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

static enum service_end open_with_server_privileges(struct service *s, struct err *e)
{
	struct server *d         = &s->server;
	bool           is_config = false;

	if (open_service_signalfd(&s->signals, e) < 0 || server_open(d, e) < 0 ||
	    backend_service_open(&s->monitor, &s->parts, &d->places, e) < 0)
		return SERVICE_FAILED;
	d->backend = backend_service_make(&s->monitor);
	if (receive_first_rules(s, &is_config, e) < 0)
		return is_config ? SERVICE_MISCONFIGURED : SERVICE_FAILED;
	if (s->parts.note[0])
		log_line(&d->log, "%s", s->parts.note);
	if (open_service_audit(s, e) < 0 || reload_open(&s->reload, d, &s->parts.reader, s->notify, e) < 0)
		return SERVICE_FAILED;
	return SERVICE_ENDED;
}

/* --- from beginning to end --- */

static enum service_end run_service(struct service *s, const struct service_options *wanted, struct err *e)
{
	struct server   *d = &s->server;
	enum service_end opened;

	if (open_with_start_privileges(s, wanted, e) < 0 || separate_processes(&s->parts, &d->places, &s->files,
									       &s->sweeper, e) < 0)
		return SERVICE_FAILED;
	opened = open_with_server_privileges(s, e);
	if (opened != SERVICE_ENDED)
		return opened;
	if (confine_server(audit_folder_fd(d->audit), &d->confinement, e) < 0)
		return SERVICE_FAILED;
	s->served = true;
	return service_loop_run(
		       d, &(struct service_loop_fds){ s->listener.fd, s->signals, s->parts.monitor, s->notify }, e) < 0
		       ? SERVICE_FAILED
		       : SERVICE_ENDED;
}

static void close_service(struct service *s)
{
	listener_close(&s->listener);
	server_close(&s->server);
	audit_close(s->server.audit);
	backend_service_close(&s->monitor);
	reader_close_and_wait(&s->parts.reader);
	fd_closep(&s->parts.ids_held);
	fd_closep(&s->signals);
	fd_closep(&s->notify);
	fd_closep(&s->failure);
	sweeper_close_and_wait(&s->sweeper);
}

enum service_end service_main(const struct service_options *wanted, struct err *e)
{
	struct service   s = { .listener = LISTENER_NONE,
			       .sweeper  = SWEEPER_NONE,
			       .monitor  = BACKEND_SERVICE_NONE,
			       .parts    = { .reader = READER_NONE, .ids_held = -1 },
			       .signals  = -1,
			       .notify   = -1,
			       .failure  = -1 };
	enum service_end end;

	server_init(&s.server);
	end = run_service(&s, wanted, e);
	if (end != SERVICE_ENDED) {
		brig_paths_unmap_view(e->text);
		failure_report(s.failure, s.served ? NULL : &s.listener, e);
	}
	close_service(&s);
	return end;
}
