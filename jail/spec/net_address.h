/*
 * net_address.h - may a name lead to this address?
 *
 * A name that is allowed says nothing about its address: the owner of the name
 * may point it at the host's own services, the metadata service of a cloud
 * (169.254.169.254, fd00:ec2::254), or a private network (DNS rebinding).
 * Ranges: IANA special-purpose registries, RFC 6890 and its updates.
 */
#pragma once
#include "defs.h"

#include <sys/socket.h>

/*
 * NULL: a public unicast address. Otherwise the name of its range ("loopback", "private", "link-local", "shared (CGNAT)", "metadata",
 * "multicast", ...). IPv4 inside of IPv6 (mapped, compatible, 6to4, Teredo, NAT64 64:ff9b::/96) is judged by both.
 */
const char *net_address_range(const struct sockaddr *address);
