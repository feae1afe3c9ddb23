/* net_secret_read.h - reads the value of a profile's secret from a file, an environment variable or a credential of systemd */
#pragma once
#include "credentials.h"
#include "net_policy.h"

/* held: as in credential_open(). One line end after the value is dropped. The error never contains a part of the value. */
must_use int net_secret_read(const struct net_secret_source *from, const struct credentials *held, struct net_secret *ret,
			     struct err *e);
