#include "ca_bundle.h"

#include <stddef.h>
#include <unistd.h>

const char *const ca_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
	"/etc/ssl/ca-bundle.pem",             /* openSUSE */
	"/etc/ssl/cert.pem",
	NULL,
};

const char *ca_bundle_find(void)
{
	for (const char *const *path = ca_bundles; *path; path++)
		if (access(*path, R_OK) == 0)
			return *path;
	return NULL;
}
