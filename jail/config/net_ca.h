/*
 * net_ca.h - makes a CA for the hosts of which brig-proxy reads what is sent over TLS
 *
 * A process brig-proxy --make-ca makes it: no other program of brig has a TLS library.
 */
#pragma once
#include "net_policy.h"
#include "paths.h"

/* cert, key: PEM, NUL-terminated. Waits for that process, for at most 10 s. */
must_use int net_ca_make(const struct brig_paths *places, net_read_host *hosts, size_t n, char cert[NET_PEM_MAX], char key[NET_PEM_MAX],
			 struct err *e);
