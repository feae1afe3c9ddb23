/*
 * net_policy.h - what a profile says about the network, and what a run gets of it
 *
 * Its settings are rows of `network` (brig-profile(5), NETWORK). Compiled they are
 * lists of rules, large and without pointers, as brig-proxy gets them; secrets are
 * named here, with where they are read from, and never read. What a request asks
 * for is judged in one place: net_policy_grant().
 */
#pragma once
#include "denial.h"
#include "field_json.h"
#include "proxy_protocol.h"

/* As they are written; of a profile without the key all NULL. */
struct net_settings {
	const json_t *allow, *ceiling, *deny; /* rules: texts, and objects of net_rule_fields */
	const json_t *secrets;                /* by name: objects of net_secret_fields */
	const char   *upstream;
};
extern const struct field net_fields[];

/* Where the value of a secret is, and for what it is sent. Texts are the profile's; exactly one of the first three is not NULL. */
struct net_secret_source {
	const char *file, *env, *credential;
	const char *name, *value;                  /* value: of the header, with {} where the secret is */
	char        header[NET_SECRET_HEADER_MAX]; /* lower case */
	char        host[NET_HOST_MAX];
	uint16_t    port;
};

struct net_policy {
	struct net_rules         allow, ceiling, deny;
	bool                     has_ceiling;
	uint32_t                 secrets;
	struct net_secret_source secret[NET_SECRETS_MAX];
	const char              *upstream; /* NULL: none */
};

/* On the heap; texts stay the settings'. NULL in *ret: nothing is said, so there is no network. */
must_use int net_policy_build(struct net_policy **ret, const struct net_settings *settings, struct err *e);
void         net_policy_free(struct net_policy *p);

/*
 * What runs may have beyond allow. Of a profile without a ceiling: in a service nothing, in a private run everything public
 * by name and what the user names by address, as every program of that user could. p may be NULL in these three.
 */
void net_policy_ceiling(const struct net_policy *p, bool is_private, struct net_rules *ret);
/* Some run of the profile may have a network: its cells in a service are built with one. */
bool net_policy_is_open(const struct net_policy *p);
/*
 * The rules of one run. asked: texts, or NULL: the profile's allow. Each must be covered by a rule of allow or of the
 * ceiling, and none may be denied; the refusal says what to write where. *ret: as many rules as there are, and nothing behind them.
 */
must_use int net_policy_grant(const struct net_policy *p, const char *profile, bool is_private, const json_t *asked, struct net_rules *ret,
			      struct denial *why);
/* For people and programs: lists as they were written, and which host gets which secret. NULL: null. */
json_t      *net_policy_json(const struct net_policy *p, const struct net_settings *settings);
/* Ports at which its cells listen for programs that know of no proxy; adds to what is there. */
void         net_policy_ports(const struct net_policy *p, uint16_t ports[NET_PORTS_MAX], uint32_t *n);
/* brig-proxy reads some of what is sent over TLS: programs must trust it. p may be NULL. */
bool         net_policy_is_read(const struct net_policy *p);
/* Without methods and paths nothing is read for a rule; for one that has them, its host must be one of which something is read. p may be NULL. */
bool         net_policy_can_read(const struct net_policy *p, const struct net_rule *rule);
/*
 * Hosts of which brig-proxy reads what is sent over TLS, so that it needs certificates for them: "a.example", "*.a.example", "*". How
 * many; ret has room for all. asked: the rules of a private run, which may have paths of their own. Each may be NULL.
 */
enum { NET_READ_MAX = NET_RULES_MAX * 3 + NET_SECRETS_MAX };
typedef char net_read_host[NET_HOST_MAX + 2];
size_t       net_policy_read_hosts(const struct net_policy *p, const struct net_rules *asked, net_read_host ret[NET_READ_MAX]);
/* HOST:PORT of an HTTP proxy. */
must_use int net_policy_check_upstream(const char *text, struct err *e);
