#include "ca_bundle.h"

#include "defs.h"

#include <stddef.h>
#include <unistd.h>

const char *ca_bundle_find(void)
{
	static const char *const bundles[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
		"/etc/ssl/ca-bundle.pem",             /* openSUSE */
		"/etc/ssl/cert.pem",
	};

	for (size_t i = 0; i < ARRAY_LEN(bundles); i++)
		if (access(bundles[i], R_OK) == 0)
			return bundles[i];
	return NULL;
}
