/* net_secret_read.h - the value of a secret of a profile, out of a file, a variable or a credential of systemd */
#pragma once
#include "credentials.h"
#include "net_policy.h"

/* held: credentials.h. By the process that may read it. One line end at the end is not part of it. The error never has a part of the value in it. */
must_use int net_secret_read(const struct net_secret_source *from, const struct credentials *held, struct net_secret *ret, struct err *e);
