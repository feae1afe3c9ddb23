#define _GNU_SOURCE
#include "chroot.h"

#include "fd.h"
#include "process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The environment is the same on every machine, because the output of programs can depend on it. */
#define CLEAN "PATH=/usr/bin:/usr/sbin", "LANG=C.UTF-8", "TZ=UTC0", "PYTHONHASHSEED=0", "SOURCE_DATE_EPOCH=315532800"

static const char *const proxies[] = { "http_proxy",  "https_proxy", "no_proxy", "all_proxy",
				       "HTTPS_PROXY", "NO_PROXY",    "ALL_PROXY" };

int chroot_run(int root, const char *const *argv, bool online, int log, int stop, struct err *e)
{
	const char *env[5 + ARRAY_LEN(proxies) + 1] = { CLEAN };
	char       *own[ARRAY_LEN(proxies)];
	size_t      n = 0;
	int         ends[2], result;

	/* not the host's /dev/null: a program that runs as root in an untrusted tree could change its mode */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	close(ends[1]);
	for (size_t i = 0; online && i < ARRAY_LEN(proxies); i++) {
		const char *value = getenv(proxies[i]);

		if (value && asprintf(&own[n], "%s=%s", proxies[i], value) > 0) {
			env[5 + n] = own[n];
			n++;
		}
	}
	result = process_run(&(struct process){ .argv = argv, .env = env, .place = root, .jailed = true,
						.network = online, .in = ends[0], .out = log, .stop = stop }, e);
	close(ends[0]);
	while (n)
		free(own[--n]);
	return result;
}
