/* brig-proxy.c - the program that a server starts for the network of its runs (proxy_protocol.h) */
#define _GNU_SOURCE
#include "packet.h"
#include "proxy.h"
#include "tls_cert.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct proxy proxy; /* too large for a stack */

static int report_exit_status(int r, const struct err *e)
{
	if (r < 0)
		fprintf(stderr, "brig-proxy: %s\n", e->text);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A warning and no error: the host's own proxy may listen on that loopback. */
static void warn_of_no_interface(void)
{
	struct if_nameindex *all = if_nameindex();

	if (all && all[0].if_index && !all[1].if_index)
		fputs("brig-proxy: there is no network here but a loopback, so nothing can be reached; "
		      "a service of systemd needs PrivateNetwork=no: brigd(8), A NETWORK\n",
		      stderr);
	if (all)
		if_freenameindex(all);
}

int main(int argc, char **argv)
{
	struct err e;

	if (argc > 2 && strcmp(argv[1], "--make-ca") == 0)
		return report_exit_status(tls_make_ca(argv + 2, argc - 2, STDOUT_FILENO, &e), &e);
	if (argc != 1 || !packet_is_socket(PROXY_FD)) {
		fputs("brig-proxy: is started by brigd(8) and brig(1), and serves nothing else\n", stderr);
		return 2;
	}
	prctl(PR_SET_NAME, "brig-proxy");
	(void)fcntl(PROXY_FD, F_SETFD, FD_CLOEXEC);
	warn_of_no_interface();
	return report_exit_status(proxy_serve(&proxy, &e), &e);
}
