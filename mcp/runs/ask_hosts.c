#include "ask_hosts.h"

#include "brigd_link.h"
#include "member.h"
#include "yes_form.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* --- names, which programs choose --- */

/* A name of ASCII letters, digits, '-' and '.', with a dot, that is not an address. Others are not asked about. */
static bool is_dns_name(const char *name)
{
	size_t      n    = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
	const char *last = strrchr(name, '.');

	return n > 0 && n <= 253 && !name[n] && last && strspn(last + 1, "0123456789") < strlen(last + 1) &&
	       *name != '.' && *name != '-' && !strstr(name, "..");
}

static bool get_refused_host(const json_t *row, char host[HOST_ASKED_MAX])
{
	json_int_t  port = json_integer_value(json_object_get(row, "port"));
	const char *name = member_text(row, "name");

	if (strcmp(member_text(row, "verdict"), "refused") != 0 ||
	    strcmp(member_text(row, "reason"), "not_allowed") != 0)
		return false;
	if (!is_dns_name(name) || port < 1 || port > 65535)
		return false;
	snprintf(host, HOST_ASKED_MAX, "%s:%d", name, (int)port);
	for (char *p = host; *p; p++)
		*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
	return true;
}

/* --- what may be asked for --- */

/* The ports of a rule without one, and the only protocol that is asked for there. */
struct web_port {
	const char *port, *scheme, *over;
};

static const struct web_port *web_port_of(const char *host)
{
	static const struct web_port ports[] = { { ":443", "https", " over HTTPS" }, { ":80", "http", " over HTTP" } };
	const char                  *port    = host + strcspn(host, ":");

	for (size_t i = 0; i < ARRAY_LEN(ports); i++)
		if (strcmp(port, ports[i].port) == 0)
			return &ports[i];
	return NULL;
}

/*
 * Does the rule of a profile have that host? Rules with a scheme or a path are not compared: then `unsure` is the
 * answer.
 */
static bool rule_allows_host(const char *rule, const char *host, bool unsure)
{
	size_t      len  = strcspn(host, ":"), n;
	const char *port = host + len;

	if (strchr(rule, '/'))
		return unsure;
	n = strcspn(rule, ":");
	if (rule[n] && strcmp(rule + n, port) != 0)
		return false;
	if (!rule[n] && !web_port_of(host))
		return false;
	if (n == 1 && *rule == '*')
		return true;
	if (*rule == '*')
		return len > n - 1 && strncasecmp(host + len - (n - 1), rule + 1, n - 1) == 0;
	return n == len && strncasecmp(rule, host, n) == 0;
}

static bool rules_allow_host(const json_t *list, const char *host, bool unsure)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *rule = json_array_get(list, i);

		if (json_is_string(rule) ? rule_allows_host(json_string_value(rule), host, unsure) : unsure)
			return true;
	}
	return false;
}

/*
 * The hosts that runs have without a person's answer, or NULL: they cannot be written in a request, as rules with
 * methods.
 */
static const json_t *hosts_without_asking(const struct mcp *m, const json_t *network)
{
	const json_t *own = json_array_size(m->settings->net) ? m->settings->net : json_object_get(network, "allow");

	for (size_t i = 0; i < json_array_size(own); i++)
		if (!json_is_string(json_array_get(own, i)))
			return NULL;
	return own;
}

static bool may_ask_about_host(const struct mcp *m, const json_t *network, const char *host)
{
	const json_t *ceiling    = json_object_get(network, "ceiling");
	bool          is_private = false;

	if (!hosts_without_asking(m, network) || rules_allow_host(json_object_get(network, "deny"), host, true))
		return false;
	if (json_is_array(ceiling))
		return rules_allow_host(ceiling, host, false);
	return brigd_link_server(m->brigd_link, &is_private) && is_private;
}

/* --- answers: {PROFILE: {network, answers: {HOST: true or false}}} --- */

static json_t *host_consents_of_profile(const struct mcp *m, const char *profile)
{
	return json_object_get(json_object_get(m->hosts, profile), "answers");
}

void hosts_set_consent(struct mcp *m, const char *profile, const char *host, bool is_allowed)
{
	json_object_set_new(host_consents_of_profile(m, profile), host, json_boolean(is_allowed));
}

bool hosts_find_to_ask(const struct execution *x, char ret[HOST_ASKED_MAX])
{
	const json_t *list    = json_object_get(json_object_get(x->record, "network"), "connections");
	const json_t *profile = json_object_get(x->mcp->hosts, x->profile),
		     *answers = json_object_get(profile, "answers");

	if (!profile || x->hosts_asked == HOSTS_OF_A_RUN)
		return false;
	if (json_object_size(answers) +
		    json_array_size(hosts_without_asking(x->mcp, json_object_get(profile, "network"))) >=
	    PROTOCOL_NETWORK_MAX)
		return false; /* a request has no room for more */
	for (size_t i = 0; i < json_array_size(list); i++)
		if (get_refused_host(json_array_get(list, i), ret) && !json_object_get(answers, ret) &&
		    may_ask_about_host(x->mcp, json_object_get(profile, "network"), ret))
			return true;
	return false;
}

json_t *hosts_consent_form(const char *host)
{
	const struct web_port *web = web_port_of(host);
	char                   text[HOST_ASKED_MAX + 300];

	snprintf(text, sizeof text,
		 "A program in the sandbox tried to reach %s, and was refused. May programs reach it%s from now on, "
		 "until this server ends? "
		 "They can send there what they know.%s",
		 host, web ? web->over : "",
		 strstr(host, "xn--") ? " The name has letters that are not ASCII (xn--): it may look like another one."
				      : "");
	return yes_form_to_json(text, "Allow it?");
}

void hosts_print_hint(const struct execution *x, char *ret, size_t len)
{
	const json_t *list = json_object_get(json_object_get(x->record, "network"), "connections");
	char          host[HOST_ASKED_MAX];

	*ret = 0;
	for (size_t i = 0; i < json_array_size(list) && !*ret; i++) {
		bool                   refused = get_refused_host(json_array_get(list, i), host);
		const json_t *answer = refused ? json_object_get(host_consents_of_profile(x->mcp, x->profile), host)
				       : NULL;
		const struct web_port *web     = answer ? web_port_of(host) : NULL;
		const char            *over    = web ? web->over : "";

		if (json_is_true(answer) && x->hosts_asked)
			snprintf(ret, len,
				 "%.200s is allowed now%s, a person has agreed: run the program again, it was not "
				 "repeated. "
				 "A session that is open does not have it: end it first.",
				 host, over);
		else if (json_is_true(answer)) /* before this run ended */
			snprintf(ret, len,
				 "%.200s is allowed%s, to runs and sessions that began after a person had agreed; "
				 "nothing else at that port is.",
				 host, over);
		else if (answer)
			snprintf(ret, len,
				 "%.200s stays refused: a person was asked, and has not agreed. Do without it.", host);
	}
}

/* --- requests --- */

/*
 * A rule for HOST:PORT. A rule without a scheme is for HTTP, too: none with port 443 is within "host", which allows
 * HTTP at port 80 alone.
 */
static json_t *host_to_rule(const char *host)
{
	const struct web_port *web = web_port_of(host);

	return web ? json_sprintf("%s://%.*s", web->scheme, (int)strcspn(host, ":"), host) : json_string(host);
}

void hosts_put_into_request(struct mcp *m, json_t *message, const json_t *explained)
{
	const char   *profile = member_text(explained, "profile"), *host;
	const json_t *network = json_object_get(explained, "network"), *own = hosts_without_asking(m, network);
	json_t       *answer, *asked = NULL;

	if (!m->settings->ask_hosts)
		return;
	if (!m->hosts)
		m->hosts = json_object();
	if (!json_object_get(m->hosts, profile))
		json_object_set_new(m->hosts, profile, json_pack("{s{}}", "answers"));
	json_object_set(json_object_get(m->hosts, profile), "network", (json_t *)network);
	json_object_foreach(host_consents_of_profile(m, profile), host, answer) {
		if (!json_is_true(answer) || !own || !may_ask_about_host(m, network, host))
			continue;
		asked = asked ? asked : json_copy((json_t *)own);
		json_array_append_new(asked, host_to_rule(host));
	}
	if (asked)
		json_object_set_new(message, "network", asked);
}
