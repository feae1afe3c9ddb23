#define _GNU_SOURCE
#include "own_address.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

struct question {
	struct nlmsghdr head;
	struct rtmsg    route;
	struct rtattr   attr;
	uint8_t         address[16];
};

union answer {
	struct nlmsghdr head;
	char            room[4096];
};

int own_address_open_netlink(struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	return fd < 0 ? err_sys(e, "netlink socket") : fd;
}

static struct question route_question(const struct sockaddr *address)
{
	bool            is_four = address->sa_family == AF_INET;
	unsigned char   bytes   = is_four ? 4 : 16;
	struct question q       = {
		.route = { .rtm_family = (unsigned char)address->sa_family, .rtm_dst_len = (unsigned char)(8 * bytes) },
		.attr  = { .rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(bytes) },
	};

	q.head = (struct nlmsghdr){ .nlmsg_type  = RTM_GETROUTE,
				    .nlmsg_flags = NLM_F_REQUEST,
				    .nlmsg_len   = NLMSG_LENGTH(sizeof q.route) + RTA_SPACE(bytes) };
	if (is_four)
		memcpy(q.address, &((const struct sockaddr_in *)address)->sin_addr, 4);
	else
		memcpy(q.address, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	return q;
}

/* Other types of routes lead to no single host: blackhole, unreachable, broadcast, multicast. */
enum own_answer own_address_ask_kernel(int kernel, const struct sockaddr *address)
{
	struct question     q = route_question(address);
	union answer        a;
	const struct rtmsg *route = NLMSG_DATA(&a.head);
	ssize_t             n;

	while (recv(kernel, &a, sizeof a, 0) > 0) /* drops the answers to earlier questions */
		;
	if (send(kernel, &q, q.head.nlmsg_len, 0) != (ssize_t)q.head.nlmsg_len)
		return OWN_NO_ROUTE;
	n = recv(kernel, &a, sizeof a, 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof *route) || a.head.nlmsg_type != RTM_NEWROUTE)
		return OWN_NO_ROUTE;
	return route->rtm_type == RTN_LOCAL ? OWN_IS : route->rtm_type == RTN_UNICAST ? OWN_NOT : OWN_NO_ROUTE;
}
