/*
 * net_ca.h - a CA for the hosts of which brig-proxy reads what is sent over TLS
 *
 * brig-proxy --make-ca makes it, in a process of its own: no other of brig's programs has a TLS library in it.
 */
#pragma once
#include "net_policy.h"
#include "place.h"

/* PEM, each a text. Waits for that process, for at most some seconds. */
must_use int net_ca_make(const struct places *places, net_read_host *hosts, size_t n, char cert[NET_PEM_MAX], char key[NET_PEM_MAX], struct err *e);
