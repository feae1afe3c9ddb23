/*
 * net_rule.h - which hosts a program may reach, as data
 *
 * A rule names hosts, ports and, for requests that brig-proxy can read, methods
 * and paths. In profiles and requests it is a text (brig.json(5), NETWORK);
 * brig-proxy gets the struct in a sealed memory file and parses no text. No
 * pointers, no system calls.
 */
#pragma once
#include "err.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	NET_HOST_MAX  = 254, /* RFC 1035, 2.3.4: 253 bytes without the last dot */
	NET_RULES_MAX = 64,  /* of one list */
	NET_PATHS_MAX = 4,
	NET_PATH_MAX  = 128,
	NET_PATH_JUDGED_MAX = 8192, /* of a request; a rule with paths allows no longer one */
	NET_PORTS_MAX = 8, /* on which a cell listens for programs that use no proxy */
};

enum net_scheme { NET_SCHEME_ANY, NET_SCHEME_HTTPS, NET_SCHEME_HTTP, NET_SCHEME_TCP };

enum net_method { /* bits */
	NET_METHOD_GET = 1, NET_METHOD_HEAD = 2, NET_METHOD_POST = 4, NET_METHOD_PUT = 8, NET_METHOD_PATCH = 16, NET_METHOD_DELETE = 32,
	NET_METHOD_OPTIONS = 64, NET_METHOD_ALL = 127,
	NET_METHOD_OTHER = 128, /* of a request (PROPFIND, ...): only rules without methods allow it. TRACE and CONNECT are 0 and never allowed */
};

enum net_host_kind {
	NET_HOST_NAME,     /* exactly this one */
	NET_HOST_BELOW,    /* "*.example.org": every name below host, at any depth, and not host itself */
	NET_HOST_PUBLIC,   /* "*": every name; host is "" */
	NET_HOST_ADDRESS,  /* a literal address, canonical text (inet_ntop) */
	NET_HOST_ANYTHING, /* every name, address and port: only in the ceiling of a private run; has no text, all other members are 0 */
};

struct net_rule {
	uint32_t host_kind, scheme; /* enum net_host_kind, enum net_scheme */
	uint32_t methods;           /* enum net_method bits; 0: all, so the rule needs no TLS termination */
	uint32_t paths;             /* used entries of path; 0: all paths */
	uint16_t port;              /* 0: the port of the scheme; 80 and 443 for NET_SCHEME_ANY */
	uint16_t is_private;        /* its names may lead to addresses that are not public */
	char     host[NET_HOST_MAX]; /* lower case, without a trailing dot; the rest is zeros */
	char     path[NET_PATHS_MAX][NET_PATH_MAX];
};

struct net_rules {
	uint32_t        n;
	struct net_rule rule[NET_RULES_MAX];
};

/* The size of the used part, which is what a memory file of rules holds. */
static inline size_t net_rules_size(const struct net_rules *rules)
{
	return offsetof(struct net_rules, rule) + rules->n * sizeof *rules->rule;
}

static inline void net_rules_copy(struct net_rules *ret, const struct net_rules *rules)
{
	memcpy(ret, rules, net_rules_size(rules));
}

/* There must be room. */
static inline void net_rules_append(struct net_rules *ret, const struct net_rules *rules)
{
	memcpy(&ret->rule[ret->n], rules->rule, rules->n * sizeof *rules->rule);
	ret->n += rules->n;
}

/* "[SCHEME://]HOST[:PORT][/PATH]". The message of ERR_BAD_SPEC has what is wrong with text, and what to write. */
must_use int net_rule_parse(const char *text, struct net_rule *ret, struct err *e);
/* The text of a rule, without methods; text has room for NET_RULE_TEXT_MAX bytes. */
enum { NET_RULE_TEXT_MAX = NET_HOST_MAX + NET_PATH_MAX + 32 };
void net_rule_print(const struct net_rule *rule, char *text);

/* Adds a path prefix, for a rule in JSON. A prefix ends at the end of a segment: "/repos" allows "/repos/x", but not "/repository". */
must_use int    net_rule_add_path(struct net_rule *rule, const char *path, struct err *e);
enum net_method net_method_parse(const char *name, size_t len); /* OTHER: a method without a bit. 0: TRACE, TRACK, CONNECT, or "get" */
/*
 * Whether every server takes the path for the same one, however often it decodes it: no segment can become "." or begin
 * with "..", and nothing is a control character, a "%uXXXX" or malformed UTF-8. "\" and an encoded "/" count as "/".
 * Looks only at what precedes "?".
 */
bool            net_path_is_unambiguous(const char *path, size_t len);

/* Whether outer allows all that inner allows. */
bool net_rule_includes(const struct net_rule *outer, const struct net_rule *inner);

/* What a program wants to reach: a name in canonical form or the text of an address. */
struct net_target {
	const char     *host;
	uint16_t        port;
	enum net_scheme scheme; /* ANY: not known yet, so a rule of any scheme matches */
};
bool net_rule_matches(const struct net_rule *rule, const struct net_target *target);
/* The first rule that matches; NULL: none. */
const struct net_rule *net_rules_find(const struct net_rules *rules, const struct net_target *target);
/* Whether some rule matches the name at any port. If not, the resolver refuses the name. */
bool net_rules_match_host(const struct net_rules *rules, const char *host);
/* Whether one of the rules that match the target lets its name lead to an address that is not public. */
bool net_rules_allow_private_address(const struct net_rules *rules, const struct net_target *target);
/*
 * Whether one of the rules that match the target allows method and path. path: origin-form, as sent; a rule with
 * another path than "/" allows none that is not clear. is_private: the name led to an address that is not public, so
 * only rules with is_private count.
 */
bool net_rules_allow_request(const struct net_rules *rules, const struct net_target *target, enum net_method method, const char *path,
			     bool is_private);
/* Whether some rule for the target has methods or paths, so that TLS must be terminated. */
bool net_rules_need_inspection(const struct net_rules *rules, const struct net_target *target);

/*
 * Canonical form of a host as a program writes it: lower case, without a trailing dot, letters, digits, "-" and "_",
 * labels of 1 to 63 bytes (an IDN comes as xn--…). A text that inet_aton(3) might take for an address (decimal, octal,
 * hex, short) is accepted only as a dotted quad, an IPv6 address only without brackets, zone and IPv4 tail; both set
 * *is_address. False: not a host, to be refused.
 */
bool net_host_canonicalize(const char *text, size_t len, char ret[NET_HOST_MAX], bool *is_address);

/* Checks rules from an untrusted peer: counts, kinds, canonical hosts, plain paths. */
bool net_rules_are_sound(const struct net_rules *rules);

/* Adds the ports on which a cell listens for programs that use no proxy: 80, 443, and the ports of rules; at most NET_PORTS_MAX in all. */
void net_rules_collect_ports(const struct net_rules *rules, uint16_t ports[NET_PORTS_MAX], uint32_t *n);
