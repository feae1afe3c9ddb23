/*
 * net_address.h - may a name lead to this address?
 *
 * An allowed name says nothing about its address: the owner of the name may
 * point it at the host's own services, the metadata service of a cloud
 * (169.254.169.254, fd00:ec2::254), or a private network (DNS rebinding).
 * Ranges: IANA special-purpose registries, RFC 6890 and its updates.
 */
#pragma once
#include "defs.h"

#include <netinet/in.h>

/*
 * NULL: a public unicast address. Otherwise the name of its range ("loopback", "private", "link-local", "shared
 * (CGNAT)", "metadata", "multicast", ...). An IPv6 address that contains an IPv4 address (mapped, 6to4, Teredo, NAT64
 * 64:ff9b::/96) has the range of that one; IPv4-compatible and IPv4-translated addresses are never public.
 */
const char *net_address_special_range(const struct sockaddr *address);

/*
 * True: *ret is the IPv4 address inside an IPv6 one, to which a translator or tunnel may take what is sent to it:
 * mapped, translated, compatible, 6to4, Teredo, NAT64 64:ff9b::/96. The place in a local NAT64 address (64:ff9b:1::/48)
 * is its network's secret.
 */
bool net_address_embedded_v4(const struct sockaddr *address, struct sockaddr_in *ret);
