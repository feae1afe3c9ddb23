/*
 * credentials.h - what systemd gave to the unit (LoadCredential=), opened while that can be done
 *
 * systemd lets only the unit's account read them, which a service's reader gives up before it looks at the first profile: it opens
 * all of them before. A private brigd reads them where they lie.
 */
#pragma once
#include "err.h"

enum { CREDENTIALS_MAX = 256, CREDENTIAL_NAME_MAX = 255 };

struct credentials {
	size_t n;
	struct {
		char name[CREDENTIAL_NAME_MAX + 1];
		int  fd; /* close-on-exec */
	} item[CREDENTIALS_MAX];
};

/* Those of $CREDENTIALS_DIRECTORY, if there is one; the caller keeps them for as long as it lives. What cannot be opened, or is no file, is left out. */
void credentials_open(struct credentials *ret);

/*
 * A descriptor of the caller's, at the file's begin. held: as credentials_open() found them, or NULL: it is opened now. The error says
 * how systemd is told to give it.
 */
must_use int credential_open(const struct credentials *held, const char *name, struct err *e);
