#define _GNU_SOURCE
#include "net_rule.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

static const char *const schemes[] = {
	[NET_SCHEME_HTTPS] = "https://",
	[NET_SCHEME_HTTP]  = "http://",
	[NET_SCHEME_TCP]   = "tcp://",
};

static int parse_scheme(const char **text, struct net_rule *r, struct err *e)
{
	const char *behind;
	size_t      len;

	for (unsigned i = NET_SCHEME_HTTPS; i < ARRAY_LEN(schemes); i++)
		if (begins_with(*text, schemes[i])) {
			r->scheme = i;
			*text += strlen(schemes[i]);
			return 0;
		}
	behind = strstr(*text, "://");
	if (!behind)
		return 0;
	/* Where there is an "@" the text may contain a password: only the scheme is printed. */
	len = strchr(*text, '@') ? (size_t)(behind + 3 - *text) : strlen(*text);
	return err_set(e, ERR_BAD_SPEC, "\"%.*s\": the scheme may be https, http or tcp", (int)len, *text);
}

static int parse_port(const char *text, size_t len, struct net_rule *r, struct err *e)
{
	char     digits[6] = { 0 };
	uint64_t port      = 0;

	if (len < sizeof digits)
		memcpy(digits, text, len);
	if (!*digits || *digits == '0' || text_to_u64(digits, &port) < 0 || port > UINT16_MAX)
		return err_set(e, ERR_BAD_SPEC, "\"%.*s\" is no port: write a number from 1 to 65535", (int)len, text);
	r->port = (uint16_t)port;
	return 0;
}

static int err_bad_host(const char *text, size_t len, struct err *e)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] & 0x80)
			return err_set(e, ERR_BAD_SPEC, "\"%.*s\": write an international name as it is in the DNS, xn--...", (int)len, text);
	return err_set(e, ERR_BAD_SPEC, "\"%.*s\" is no host: write one name like pypi.org, *.NAME for all below it, * for all public hosts, "
		       "an IPv4 address as four decimal numbers, [IPv6], or \"none\" alone", (int)len, text);
}

/*
 * Words that other programs take for an option, like "none". As the name of a host, alone in a rule, each is refused:
 * it would allow something else than was meant.
 */
static bool host_is_option_word(const struct net_rule *r)
{
	static const char *const words[] = {
		"none", "no",   "off",     "false",    "disabled", "all",    "any",    "yes",
		"on",   "true", "enabled", "internet", "host",     "bridge", "public",
	};

	if (r->host_kind != NET_HOST_NAME || r->scheme != NET_SCHEME_ANY || r->port || r->paths)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i], r->host) == 0)
			return true;
	return false;
}

static int parse_host(const char *text, size_t len, struct net_rule *r, struct err *e)
{
	bool        below   = len > 2 && begins_with(text, "*.");
	bool        bracket = len > 2 && text[0] == '[' && text[len - 1] == ']', is_address;
	const char *name = text + (below ? 2 : bracket);
	size_t      n    = len - (below ? 2 : bracket ? 2 : 0);

	if (len == 1 && text[0] == '*') {
		r->host_kind = NET_HOST_PUBLIC;
		return 0;
	}
	if (*name == '-' || !net_host_canonicalize(name, n, r->host, &is_address) || (is_address && below) ||
	    bracket != (is_address && strchr(r->host, ':')))
		return err_bad_host(text, len, e);
	r->host_kind = is_address ? NET_HOST_ADDRESS : below ? NET_HOST_BELOW : NET_HOST_NAME;
	return 0;
}

static bool path_is_plain(const char *path)
{
	size_t len = strlen(path);

	if (*path != '/' || len >= NET_PATH_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (path[i] <= ' ' || path[i] > '~' || strchr("?#\\", path[i]))
			return false;
	return net_path_is_unambiguous(path, len);
}

int net_rule_add_path(struct net_rule *rule, const char *path, struct err *e)
{
	if (rule->scheme == NET_SCHEME_TCP)
		return err_set(e, ERR_BAD_SPEC, "\"%s\": tcp has no paths, since nothing looks inside", path);
	if (!path_is_plain(path))
		return err_set(e, ERR_BAD_SPEC, "\"%.200s\" is not a valid path prefix: write \"/...\" in visible ASCII, at most %d bytes, "
			       "without ?, #, \\, \".\" and \"..\"", path, NET_PATH_MAX - 1);
	if (rule->paths == NET_PATHS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d paths in one rule", NET_PATHS_MAX);
	strcpy(rule->path[rule->paths++], path);
	return 0;
}

/* The host ends at a colon outside of brackets, or at the end. */
static size_t host_length(const char *text, size_t len)
{
	const char *bracket = *text == '[' ? memchr(text, ']', len) : NULL;
	size_t      from    = bracket ? (size_t)(bracket - text) : 0;
	const char *colon   = memchr(text + from, ':', len - from), *last = memrchr(text + from, ':', len - from);

	/* Two colons: IPv6 without brackets, which parse_host() refuses. */
	return colon && colon == last ? (size_t)(colon - text) : len;
}

/* Refuses what looks like a path but is probably "//HOST" without a scheme, or the length of an address range ("10.0.0.0/8"). */
static bool path_is_misspelt(const struct net_rule *r, const char *text, const char *path, struct err *e)
{
	size_t digits = strspn(path + 1, "0123456789");

	if (r->scheme != NET_SCHEME_ANY)
		return false;
	if (path[1] == '/')
		err_set(e, ERR_BAD_SPEC, "\"%s\" has neither a scheme nor a path: write https://HOST or HOST/PATH", text);
	else if (r->host_kind == NET_HOST_ADDRESS && digits > 0 && digits <= 3 && !path[1 + digits])
		err_set(e, ERR_BAD_SPEC, "\"%s\": a range of addresses cannot be allowed: name each address", text);
	else
		return false;
	return true;
}

static int parse_after_scheme(const char *text, struct net_rule *r, struct err *e)
{
	size_t len = strcspn(text, "/?#"), host = host_length(text, len);

	if (memchr(text, '@', len))
		return err_set(e, ERR_BAD_SPEC, "a rule has no user and no password: write what is behind the \"@\""); /* not repeated here */
	if (text[len] == '?' || text[len] == '#')
		return err_set(e, ERR_BAD_SPEC, "\"%s\": a rule has no query and no fragment", text);
	if (parse_host(text, host, r, e) < 0)
		return -1;
	if (host < len && parse_port(text + host + 1, len - host - 1, r, e) < 0)
		return -1;
	if (r->scheme == NET_SCHEME_TCP && !r->port)
		return err_set(e, ERR_BAD_SPEC, "tcp://%s: tcp needs a port: tcp://HOST:PORT", text);
	if (!text[len] || strcmp(text + len, "/") == 0)
		return 0;
	return path_is_misspelt(r, text, text + len, e) ? -1 : net_rule_add_path(r, text + len, e);
}

int net_rule_parse(const char *text, struct net_rule *ret, struct err *e)
{
	struct net_rule r = { 0 };

	if (strlen(text) >= NET_RULE_TEXT_MAX)
		return err_set(e, ERR_BAD_SPEC, "a rule of %zu bytes: at most %d", strlen(text), NET_RULE_TEXT_MAX - 1);
	if (!text_is_plain(text))
		return err_set(e, ERR_BAD_SPEC, "a rule has characters that cannot be shown");
	if (parse_scheme(&text, &r, e) < 0 || parse_after_scheme(text, &r, e) < 0)
		return -1;
	if (host_is_option_word(&r))
		return err_bad_host(text, strlen(text), e);
	*ret = r;
	return 0;
}

void net_rule_print(const struct net_rule *rule, char *text)
{
	bool        bracket = rule->host_kind == NET_HOST_ADDRESS && strchr(rule->host, ':');
	const char *scheme  = rule->scheme < ARRAY_LEN(schemes) && schemes[rule->scheme] ? schemes[rule->scheme] : "";
	char        port[8] = "", more[24] = "";

	if (rule->host_kind == NET_HOST_ANYTHING) {
		strcpy(text, "anything");
		return;
	}
	if (rule->port)
		snprintf(port, sizeof port, ":%u", rule->port);
	if (rule->paths > 1)
		snprintf(more, sizeof more, " and %u more", rule->paths - 1);
	snprintf(text, NET_RULE_TEXT_MAX, "%s%s%s%s%s%s%s", scheme, bracket ? "[" : "",
		 rule->host_kind == NET_HOST_PUBLIC  ? "*"
		 : rule->host_kind == NET_HOST_BELOW ? "*."
						     : "",
		 rule->host, bracket ? "]" : "", port, rule->paths ? rule->path[0] : "");
	strncat(text, more, NET_RULE_TEXT_MAX - 1 - strlen(text));
}

/* --- from a peer --- */

static bool host_is_sound(const struct net_rule *r)
{
	char canonical[NET_HOST_MAX];
	bool is_address;

	if (memchr(r->host, 0, sizeof r->host) == NULL)
		return false;
	if (r->host_kind == NET_HOST_PUBLIC || r->host_kind == NET_HOST_ANYTHING)
		return r->host[0] == 0;
	return r->host_kind <= NET_HOST_ANYTHING &&
	       net_host_canonicalize(r->host, strlen(r->host), canonical, &is_address) &&
	       memcmp(canonical, r->host, sizeof canonical) == 0 && is_address == (r->host_kind == NET_HOST_ADDRESS);
}

static bool rule_is_sound(const struct net_rule *r)
{
	bool is_bare = r->methods == 0 && r->paths == 0;

	if (!host_is_sound(r) || r->paths > NET_PATHS_MAX || r->scheme > NET_SCHEME_TCP || r->methods > NET_METHOD_ALL || r->is_private > 1)
		return false;
	for (unsigned i = 0; i < r->paths; i++)
		if (!memchr(r->path[i], 0, NET_PATH_MAX) || !path_is_plain(r->path[i]))
			return false;
	if (r->host_kind == NET_HOST_ANYTHING)
		return is_bare && r->scheme == NET_SCHEME_ANY && r->port == 0;
	return r->scheme != NET_SCHEME_TCP || (is_bare && r->port != 0);
}

bool net_rules_are_sound(const struct net_rules *rules)
{
	if (rules->n > NET_RULES_MAX)
		return false;
	for (unsigned i = 0; i < rules->n; i++)
		if (!rule_is_sound(&rules->rule[i]))
			return false;
	return true;
}
