/* service.h - brigd as a service: everything is read and opened, then clients are served until a signal */
#pragma once
#include "err.h"

struct service_options {
	const char *socket; /* NULL: systemd's if it gave one, else the usual place */
	const char *config; /* NULL: the usual file, if there is one */
};

enum service_end { SERVICE_ENDED, SERVICE_FAILED, SERVICE_MISCONFIGURED };

enum service_end service_main(const struct service_options *wanted, struct err *e);
