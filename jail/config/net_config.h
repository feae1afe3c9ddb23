/*
 * net_config.h - the configuration of a brig-proxy, and the certificates with which programs trust it
 *
 * Made by the process that reads profiles: a service's reader, or a private server for each of its runs. Values of
 * secrets and the key of the CA are in one sealed memory file, which only brig-proxy reads.
 */
#pragma once
#include "code_digest.h"
#include "net_policy.h"
#include "paths.h"

struct net_config {
	int proxy_fd; /* struct proxy_config; -1: there is no network */
	int trust_fd; /* certificates that programs need, PEM; -1: brig-proxy reads nothing that is sent over TLS */
	char digest[CODE_DIGEST_HEX + 1]; /* of all but the CA, which is new at each reading; "": of a private run */
};
#define NET_CONFIG_NONE ((struct net_config){ -1, -1, "" })

/*
 * policy: of the profile, or NULL. asked: the rules of the private run for which it is made; NULL in a service. Reads
 * secrets and, if some TLS is to be read, waits for brig-proxy to make a CA. Errors name the settings as the profile
 * does.
 */
must_use int net_config_make(struct net_config *ret, const struct brig_paths *places, const struct net_policy *policy,
			     const struct net_rules *asked, struct err *e);
void         net_config_close(struct net_config *c);
