#include "net_listeners.h"

bool net_listeners_are_sound(const struct net_listeners *l)
{
	if (l->ports > NET_PORTS_MAX)
		return false;
	for (uint32_t i = 0; i < l->ports; i++) {
		if (l->port[i] == 0 || l->port[i] == NET_DNS_PORT || l->port[i] == NET_PROXY_PORT)
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (l->port[j] == l->port[i])
				return false;
	}
	return true;
}
