/*
 * net_policy.h - the network settings of a profile, and what a run gets of it
 *
 * The settings are the rows of `network` (brig-profile(5), NETWORK). They are
 * compiled into lists of rules, which are large and have no pointers, as brig-proxy
 * gets them. A secret has only its name and the place of its value here; its value is
 * never read. net_policy_grant_rules() alone decides what a request gets.
 */
#pragma once
#include "denial.h"
#include "field_json.h"
#include "proxy_protocol.h"

/* The settings as JSON; all NULL when the profile has no key `network`. */
struct net_settings {
	const json_t *allow, *ceiling, *deny; /* lists of rules: texts, or objects of net_rule_fields */
	const json_t *secrets;                /* by name: objects of secret_fields */
	const char   *upstream;
	/* Of the key `packages`, not of `network`: an index, and what else serves its files; or NULL. */
	const char   *index;
	const json_t *index_hosts;
};
extern const struct field net_fields[], net_rule_fields[];
enum { PACKAGE_HOSTS_MAX = 16 };

/* Where the value of a secret is, and where it is sent. Texts are borrowed from the profile; exactly one of the first three is not NULL. */
struct net_secret_source {
	const char *file, *env, *credential;
	const char *name, *value;                  /* value: the value of the header, with {} in the place of the secret */
	char        header[NET_SECRET_HEADER_MAX]; /* lower case */
	char        host[NET_HOST_MAX];
	uint16_t    port;
};

struct net_policy {
	struct net_rules         allow, ceiling, deny;
	struct net_rules         packages; /* for runs of the mode resolve, and no others */
	bool                     has_ceiling;
	uint32_t                 secrets;
	struct net_secret_source secret[NET_SECRETS_MAX];
	const char              *upstream; /* NULL: none */
};

/* On the heap, for free(); texts are borrowed from the settings. *ret is NULL when no setting is there: runs have no network. */
must_use int net_policy_build(struct net_policy **ret, const struct net_settings *settings, struct err *e);

/*
 * What runs may ask for besides allow. Without a ceiling in the profile: nothing in a service; in a private run every
 * public name, and any address that the user names, since any program of that user can reach these. p may be NULL, also
 * in the next two functions.
 */
void net_policy_copy_ceiling(const struct net_policy *p, bool is_private, struct net_rules *ret);
/*
 * The rules for the simple index at an address: adds its host and, for PyPI, the host of its files. No path: brig-proxy
 * need not read what is sent.
 */
must_use int net_policy_add_index(const char *address, struct net_rules *ret, struct err *e);
/* Whether any run of the profile may have a network: if so, a service builds its cells with one. */
bool net_policy_allows_any_host(const struct net_policy *p);
/*
 * The rules of one run. asked: texts; NULL: the rules are the profile's allow. Each must be covered by one rule of
 * allow or of the ceiling and by none of deny; the message of a refusal names what to change. Writes the first n rules
 * of *ret and leaves the memory behind them as it is.
 */
must_use int net_policy_grant_rules(const struct net_policy *p, const char *profile, bool is_private,
				    const json_t *asked, struct net_rules *ret, struct denial *why);
/* The lists as in the profile, and the host of each secret. New reference; null when p is NULL. */
json_t      *net_policy_to_json(const struct net_policy *p, const struct net_settings *settings);
/* Ports on which cells listen for programs that use no proxy; added to the *n that are there. */
void         net_policy_collect_ports(const struct net_policy *p, uint16_t ports[NET_PORTS_MAX], uint32_t *n);
/* Whether brig-proxy terminates some TLS connections, so that programs must trust its certificates. p may be NULL. */
bool         net_policy_needs_inspection(const struct net_policy *p);
/*
 * Whether brig-proxy can enforce the methods and paths of the rule: it has none, or the profile makes brig-proxy
 * terminate TLS for its host. p may be NULL.
 */
bool         net_policy_can_inspect(const struct net_policy *p, const struct net_rule *rule);
/*
 * The hosts for which brig-proxy terminates TLS and needs certificates: "a.example", "*.a.example", "*". Returns how
 * many; ret has room for all. asked: the rules of a private run, which may have paths of their own. Both p and asked
 * may be NULL.
 */
enum { NET_READ_MAX = NET_RULES_MAX * 3 + NET_SECRETS_MAX };
typedef char net_read_host[NET_HOST_MAX + 2];
size_t       net_policy_list_inspected_hosts(const struct net_policy *p, const struct net_rules *asked,
					     net_read_host ret[NET_READ_MAX]);
/* text: HOST:PORT of an HTTP proxy. */
must_use int net_policy_check_upstream(const char *text, struct err *e);
