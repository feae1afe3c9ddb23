#define _GNU_SOURCE
#include "private.h"

#include "server.h"
#include "fd.h"
#include "file.h"
#include "unavailable.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { SOCKET = 3 };

/* Sets *sock as soon as there is a client that an error can be sent to, also on failure. */
static int adopt_client_socket(const char *text, int *sock, struct err *e)
{
	uint64_t n;

	if (text_to_u64(text, &n) < 0 || n <= STDERR_FILENO || n > 1 << 20)
		return err_set(e, ERR_BAD_SPEC, "--fd: \"%.20s\" is no descriptor", text);
	*sock = (int)n;
	if (fcntl((int)n, F_GETFD) < 0)
		return err_set(e, ERR_BAD_SPEC, "--fd: \"%.20s\" is not open", text);
	if (n != SOCKET && dup2((int)n, SOCKET) < 0)
		return err_sys(e, "--fd %.20s", text);
	*sock = SOCKET;
	if (close_range(SOCKET + 1, ~0u, 0) < 0 || fcntl(SOCKET, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(SOCKET, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "--fd %.20s", text);
	return 0;
}

/*
 * brig.json binds an installed brig, but not root, nor a caller that uses other profiles or another store
 * (places.apart). If it exists and cannot be read, the run is refused.
 */
static int check_private_runs_allowed(const struct brig_paths *p, struct err *e)
{
	scoped_config host = { 0 };

	if (p->apart || geteuid() == 0 || (access(PLACE_CONFIG, F_OK) < 0 && errno == ENOENT))
		return 0;
	if (config_load(&host, PLACE_CONFIG, PLACE_CONFIG, e) < 0)
		return -1;
	return host.private_runs ? 0
				 : err_set(e, ERR_DENIED,
					   PLACE_CONFIG ": private_runs is false: this host's programs run through its "
							"service; leave --private out");
}

static int prepare_private_server(struct server *d, const char *fd, int *sock, struct err *e)
{
	if (adopt_client_socket(fd, sock, e) < 0)
		return -1;
	if (file_open_standard_fds() < 0)
		return err_sys(e, "descriptors 0 to 2 cannot be filled with /dev/null");
	if (brig_paths_find(&d->places, e) < 0 || check_private_runs_allowed(&d->places, e) < 0 ||
	    config_parse(&d->config, "{}", 2, e) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* at the caller's file size limit a write must fail, not kill brigd */
	setsid(); /* the terminal's signals go to the client only */
	access_build_for_user(&d->access, geteuid());
	d->backend = backend_private_make(&d->places);
	return server_open(d, e);
}

int private_main(const char *fd, struct err *e)
{
	struct server d    = { .is_private = true };
	int           sock = -1, r;
	scoped_fd     spare = -1;

	server_init(&d);
	r     = prepare_private_server(&d, fd, &sock, e);
	/* for unavailable_send_error(): the server has closed its own if it could not use it */
	spare = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (r == 0)
		r = server_serve_one_client(&d, sock, e);
	if (r < 0 && !d.connections_len && !d.runs_len) { /* nothing was started */
		err_wrap(e, "set-up step start-brigd");
		unavailable_send_error(spare < 0 ? sock : spare, e);
	}
	server_close(&d);
	return r;
}
