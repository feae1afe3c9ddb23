/*
 * credentials.h - the credentials that systemd gave to the unit (LoadCredential=)
 *
 * Only the unit's account may read them. A service's reader gives that account up before it reads the first profile, so
 * it opens all of them before that. A private brigd opens one when it needs it.
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

/* Opens all files in $CREDENTIALS_DIRECTORY, if it is set. They are never closed. What cannot be opened, or is no file, is left out. */
void credentials_open(struct credentials *ret);

/*
 * The caller owns the descriptor, whose offset is 0. held: from credentials_open(), or NULL: the credential is opened
 * now. The error names the LoadCredential= that is missing.
 */
must_use int credential_open(const struct credentials *held, const char *name, struct err *e);
