/*
 * net_rule.h - which hosts a program may reach, as data
 *
 * A rule names hosts, ports and, for requests that brig-proxy can read, methods
 * and paths. Profiles and requests write it as text (brig.json(5), NETWORK); the
 * proxy gets the struct, in sealed memory, and parses no text. No pointers, no
 * system calls.
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
	NET_PORTS_MAX = 8, /* that a cell listens on for programs that know of no proxy */
};

enum net_scheme { NET_SCHEME_ANY, NET_SCHEME_HTTPS, NET_SCHEME_HTTP, NET_SCHEME_TCP };

enum net_method { /* bits */
	NET_METHOD_GET = 1, NET_METHOD_HEAD = 2, NET_METHOD_POST = 4, NET_METHOD_PUT = 8, NET_METHOD_PATCH = 16, NET_METHOD_DELETE = 32,
	NET_METHOD_OPTIONS = 64, NET_METHOD_ALL = 127,
	NET_METHOD_OTHER = 128, /* of a request (PROPFIND, ...): no rule names it, one without methods lets it through. TRACE and CONNECT are 0 and never let through */
};

enum net_host_kind {
	NET_HOST_NAME,     /* exactly this one */
	NET_HOST_BELOW,    /* "*.example.org": every name below host, at any depth, and not host itself */
	NET_HOST_PUBLIC,   /* "*": every name; host is "" */
	NET_HOST_ADDRESS,  /* a literal address, canonical text (inet_ntop) */
	NET_HOST_ANYTHING, /* every name and every address at every port: the ceiling of a private run; has no text, and nothing else in it */
};

struct net_rule {
	uint32_t host_kind, scheme; /* enum net_host_kind, enum net_scheme */
	uint32_t methods;           /* bits; 0: all, and nothing is read for it */
	uint32_t paths;             /* prefixes in path; 0: all */
	uint16_t port;              /* 0: the scheme's; of NET_SCHEME_ANY 80 and 443 */
	uint16_t is_private;        /* its names may lead to addresses that are not public */
	char     host[NET_HOST_MAX]; /* lower case, without a last dot; ends with 0, and zeros behind it */
	char     path[NET_PATHS_MAX][NET_PATH_MAX];
};

struct net_rules {
	uint32_t        n;
	struct net_rule rule[NET_RULES_MAX];
};

/* Of the rules that are there: a file of them has no more than these bytes. */
static inline size_t net_rules_size(const struct net_rules *rules)
{
	return offsetof(struct net_rules, rule) + rules->n * sizeof *rules->rule;
}

static inline void net_rules_copy(struct net_rules *ret, const struct net_rules *rules)
{
	memcpy(ret, rules, net_rules_size(rules));
}

/* "[SCHEME://]HOST[:PORT][/PATH]"; ERR_BAD_SPEC says what is wrong with text, and what to write. */
must_use int net_rule_parse(const char *text, struct net_rule *ret, struct err *e);
/* As it is written; text holds NET_RULE_TEXT_MAX. Methods are left out. */
enum { NET_RULE_TEXT_MAX = NET_HOST_MAX + NET_PATH_MAX + 32 };
void net_rule_print(const struct net_rule *rule, char *text);

/* The other beginnings of paths that a rule in JSON has, and its methods. A beginning ends where a segment does: "/repos" lets "/repos/x" through, and not "/repository". */
must_use int    net_rule_add_path(struct net_rule *rule, const char *path, struct err *e);
enum net_method net_method_parse(const char *name, size_t len); /* "GET": as HTTP writes it. OTHER: a method without a bit of its own. 0: TRACE, CONNECT */
/* A segment of the path is "." or ".." to some reader: also percent-encoded, between "\" or encoded slashes, with ";..." behind it. Ends at "?". */
bool            net_path_has_dots(const char *path, size_t len);

/* All that inner allows is allowed by outer. */
bool net_rule_covers(const struct net_rule *outer, const struct net_rule *inner);

/* What a program wants to reach: a name in canonical form or the text of an address. */
struct net_target {
	const char     *host;
	uint16_t        port;
	enum net_scheme scheme; /* ANY: not known yet, any rule for host and port matches */
};
bool net_rule_matches(const struct net_rule *rule, const struct net_target *target);
/* The first that matches; NULL: none. */
const struct net_rule *net_rules_find(const struct net_rules *rules, const struct net_target *target);
/* Some rule could match the name at some port: it is worth an answer of the resolver. */
bool net_rules_know(const struct net_rules *rules, const char *host);
/* A request that was read: of all rules that match its target, one allows method and path. path: origin-form, as sent; "." and ".." segments, also percent-encoded, are refused before. */
bool net_rules_allow_request(const struct net_rules *rules, const struct net_target *target, enum net_method method, const char *path);
/* Some rule for this target has methods or paths: TLS is to be terminated. */
bool net_rules_read(const struct net_rules *rules, const struct net_target *target);

/*
 * Canonical form of a host as a program writes it: lower case, last dot cut off, letters, digits, "-" and "_", labels of 1 to
 * 63 bytes (an IDN comes as xn--…). What could be an address in any spelling of inet_aton(3) (decimal, octal, hex, short) is
 * only accepted as a dotted quad or as IPv6 (without brackets, zone or an IPv4 tail), and *is_address says so. False: refuse it.
 */
bool net_host_canonical(const char *text, size_t len, char ret[NET_HOST_MAX], bool *is_address);

/* From a peer that is not trusted: counts, kinds, ends of texts. */
bool net_rules_are_sound(const struct net_rules *rules);

/* Ports at which a cell listens for programs that know of no proxy: 80, 443, and those that rules name; at most NET_PORTS_MAX. Adds to *n. */
void net_rules_ports(const struct net_rules *rules, uint16_t ports[NET_PORTS_MAX], uint32_t *n);
