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

static int run_jailed(int root, const char *const *argv, const char *const *env, bool online, int log, int stop,
		      struct err *e)
{
	int       ends[2];
	scoped_fd nothing = -1;

	/* not the host's /dev/null: a program that runs as root in an untrusted tree could change its mode */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	close(ends[1]);
	nothing = ends[0];
	return process_run(&(struct process){ .argv    = argv,
					      .env     = env,
					      .place   = root,
					      .jailed  = true,
					      .network = online,
					      .in      = nothing,
					      .out     = log,
					      .stop    = stop },
			   e);
}

int chroot_run(int root, const char *const *argv, int log, int stop, struct err *e)
{
	static const char *const env[] = { CLEAN, NULL };

	return run_jailed(root, argv, env, false, log, stop, e);
}

int chroot_run_online(int root, const char *const *argv, int log, int stop, struct err *e)
{
	const char *env[5 + ARRAY_LEN(proxies) + 1] = { CLEAN };
	char       *own[ARRAY_LEN(proxies)];
	size_t      n = 0;
	int         result;

	for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
		const char *value = getenv(proxies[i]);

		if (value && asprintf(&own[n], "%s=%s", proxies[i], value) > 0) {
			env[5 + n] = own[n];
			n++;
		}
	}
	result = run_jailed(root, argv, env, true, log, stop, e);
	while (n)
		free(own[--n]);
	return result;
}
