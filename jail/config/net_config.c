#define _GNU_SOURCE
#include "net_config.h"

#include "fd.h"
#include "net_ca.h"
#include "net_secret_read.h"
#include "sealed.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* text: "http://HOST:PORT/" or "HOST:PORT", which other programs take too. */
static int parse_upstream_variable(const char *name, const char *text, struct proxy_config *ret, struct err *e)
{
	const char *host = begins_with(text, "http://") ? text + 7 : text;
	size_t      len  = strcspn(host, "/");

	if (host[len] && host[len + 1])
		return err_set(e, ERR_BAD_SPEC, "upstream: %s of your environment is not understood; write http://HOST:PORT", name);
	snprintf(ret->upstream, sizeof ret->upstream, "%.*s", (int)len, host);
	return net_policy_check_upstream(ret->upstream, e) < 0 ? err_wrap(e, "%s of your environment", name) : 0;
}

/* From the profile; else, for a private run, from the environment, as the user's other programs take it. */
static int find_upstream(const struct net_policy *p, bool is_private, struct proxy_config *ret, struct err *e)
{
	static const char *const names[] = { "HTTPS_PROXY", "https_proxy" };

	if (p && p->upstream) {
		snprintf(ret->upstream, sizeof ret->upstream, "%s", p->upstream);
		return 0;
	}
	for (size_t i = 0; is_private && i < ARRAY_LEN(names); i++) {
		const char *text = getenv(names[i]);

		if (text && *text)
			return parse_upstream_variable(names[i], text, ret, e);
	}
	return 0;
}

static int make_ca_if_needed(const struct brig_paths *places, const struct net_policy *p,
			     const struct net_rules *asked, struct proxy_config *ret, struct err *e)
{
	net_read_host *hosts = calloc(NET_READ_MAX, sizeof *hosts);
	size_t         n     = hosts ? net_policy_list_inspected_hosts(p, asked, hosts) : 0;
	int            done  = n ? net_ca_make(places, hosts, n, ret->ca_cert, ret->ca_key, e) : 0;

	if (!hosts)
		return err_set(e, ERR_LIMIT, "out of memory");
	ret->has_ca = n > 0;
	free(hosts);
	return done;
}

/* Arguments of net_config_make(). */
struct making {
	struct net_config       *ret;
	const struct brig_paths *places;
	const struct net_policy *policy;
	const struct net_rules  *asked;
};

static int fill_proxy_config(void *bytes, void *arg, struct err *e)
{
	struct proxy_config     *c = bytes;
	const struct making     *m = arg;
	const struct net_policy *p = m->policy;

	net_policy_copy_ceiling(p, m->asked != NULL, &c->ceiling);
	if (p) {
		net_rules_copy(&c->allow, &p->allow);
		net_rules_copy(&c->deny, &p->deny);
		if (!m->asked) /* in a private run, asked has them */
			net_rules_append(&c->ceiling, &p->packages);
	}
	for (; p && c->secrets < p->secrets; c->secrets++)
		if (net_secret_read(&p->secret[c->secrets], m->places->credentials, &c->secret[c->secrets], e) < 0)
			return err_wrap(e, "network: secrets: %s", p->secret[c->secrets].name);
	if (find_upstream(p, m->asked != NULL, c, e) < 0)
		return -1;
	if (!m->asked) /* a private run has no other configuration to compare with, and a digest takes half a millisecond */
		code_compute_digest(c, sizeof *c, m->ret->digest);
	if (make_ca_if_needed(m->places, p, m->asked, c, e) < 0)
		return -1;
	m->ret->trust_fd = c->has_ca ? sealed_create("brig-trust", c->ca_cert, strlen(c->ca_cert), e) : -1;
	return c->has_ca && m->ret->trust_fd < 0 ? -1 : 0;
}

int net_config_make(struct net_config *ret, const struct brig_paths *places, const struct net_policy *policy, const struct net_rules *asked,
		    struct err *e)
{
	struct making making = { ret, places, policy, asked };

	*ret          = NET_CONFIG_NONE;
	ret->proxy_fd = sealed_create_filled("brig-network", sizeof(struct proxy_config), fill_proxy_config, &making, e);
	if (ret->proxy_fd >= 0)
		return 0;
	net_config_close(ret);
	return -1;
}

void net_config_close(struct net_config *c)
{
	fd_closep(&c->proxy_fd);
	fd_closep(&c->trust_fd);
}
