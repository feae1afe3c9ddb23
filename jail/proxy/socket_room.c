#define _GNU_SOURCE
#include "socket_room.h"

#include <sys/socket.h>

/* The kernel doubles each number, for its own structs, and bounds the first by net.core.rmem_max and wmem_max. 600
 * connections: about 60 MiB. */
/* clang-format off */
static const struct {
	uint64_t open;            /* up to so many connections */
	int receive[2], send[2];  /* KiB, by enum socket_end */
} rooms[] = {
	{ 8,          { 1024, 64 }, { 128, 128 } },
	{ 64,         { 32,   32 }, { 16,  32 } },
	{ UINT64_MAX, { 8,    8 },  { 8,   16 } },
};
/* clang-format on */

void socket_buffers_set(int fd, enum socket_end end, uint64_t open)
{
	size_t i = 0;
	int    receive, send;

	while (open > rooms[i].open)
		i++;
	receive = rooms[i].receive[end] * 1024;
	send    = rooms[i].send[end] * 1024;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof receive);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send, sizeof send);
}
