/*
 * ask_hosts.h - hosts that programs were refused, about which a person is asked (--ask-hosts).
 *
 * On stdio only, whose client is one session. A host with its port is asked about once, after the run that was
 * refused it, and the answer holds until brig-mcp ends. A yes changes nothing of that run, and starts none: a program
 * may have done half of its work. Later runs and new sessions of the profile may reach the host. There is no question
 * where brigd would refuse what a yes means: the profile's ceiling and deny hold, an address that is not public stays
 * refused, and a service that has no ceiling for it lets its clients widen nothing.
 */
#pragma once
#include "execution.h"

enum { HOSTS_OF_A_RUN = 3 };

/* The next one to be asked about, HOST:PORT. False: none. */
must_use bool hosts_find_to_ask(const struct execution *x, char ret[HOST_ASKED_MAX]);
/* Params of elicitation/create. */
json_t *hosts_consent_form(const char *host);
void    hosts_set_consent(struct mcp *m, const char *profile, const char *host, bool is_allowed);
/* What was answered about the hosts that this run was refused: a hint for the model, "" if nothing was. */
void    hosts_print_hint(const struct execution *x, char *ret, size_t len);

/* Puts what was allowed into a request that begins a jail. explained: of its profile. */
void hosts_put_into_request(struct mcp *m, json_t *message, const json_t *explained);
