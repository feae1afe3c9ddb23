#include "net_listeners.h"

static bool is_free(const struct net_listeners *l, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (l->port[j] == l->port[i])
			return false;
	return l->port[i] != 0 && l->port[i] != NET_DNS_PORT && l->port[i] != NET_PROXY_PORT;
}

bool net_listeners_are_sound(const struct net_listeners *l)
{
	if (l->ports > NET_PORTS_MAX)
		return false;
	for (uint32_t i = 0; i < l->ports; i++)
		if (!is_free(l, i))
			return false;
	return true;
}
