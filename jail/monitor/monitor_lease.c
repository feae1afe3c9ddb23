/* monitor_lease.c - cells that the server may use without the monitor */
#define _GNU_SOURCE
#include "monitor_parts.h"

#include "packet.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/un.h>

static bool is_socketpair_of_type(int fd, int wanted)
{
	struct sockaddr_un peer = { .sun_family = AF_UNSPEC };
	socklen_t          len = sizeof peer, size = sizeof(int);
	int                type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == wanted &&
	       getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sun_family == AF_UNIX &&
	       len == sizeof peer.sun_family;
}

bool monitor_is_seqpacket_pair(int fd)
{
	return is_socketpair_of_type(fd, SOCK_SEQPACKET);
}

bool monitor_is_stream_pair(int fd)
{
	return is_socketpair_of_type(fd, SOCK_STREAM);
}

/* --- what a supervisor sends: it is trusted in its own profile only --- */

/* A write to a memory file never waits. A file of another kind could make the server wait for ever. */
static bool is_memfd(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static bool are_lease_fds_valid(const int fds[LEASE_FDS])
{
	return monitor_is_seqpacket_pair(fds[LEASE_SUPERVISOR]) && monitor_is_seqpacket_pair(fds[LEASE_ORDERS]) &&
	       is_memfd(fds[LEASE_ORDER_FILE]) && is_pipe(fds[LEASE_STDOUT]) && is_pipe(fds[LEASE_STDERR]) &&
	       is_pipe(fds[LEASE_STDIN]) && is_pipe(fds[LEASE_RESULT]);
}

/* --- what the server is told --- */

/* Does not wait for a server that is not reading: without a lease the monitor goes on to assign the cell. */
static int send_lease_message(struct monitor *k, uint32_t kind, const struct monitored_cell *s, const int *fds,
			      size_t n)
{
	struct monitor_lease message;

	memset(&message, 0, sizeof message);
	message.kind            = kind;
	message.cell.number     = (uint32_t)(s - k->cell);
	message.profile         = s->profile;
	message.cell.generation = s->generation;
	message.rootfs_since_s  = k->kept[s->profile].rootfs_since.tv_sec;
	message.rootfs_since_ns = k->kept[s->profile].rootfs_since.tv_nsec;
	message.missing         = s->group.missing;
	return packet_send_nowait(k->server, &message, sizeof message, fds, n);
}

void monitor_send_lease(struct monitor *k, struct monitored_cell *s, int fds[LEASE_FDS])
{
	if (s->is_for_any_run && are_lease_fds_valid(fds))
		s->lease_is_out = send_lease_message(k, MONITOR_LEASE, s, fds, LEASE_FDS) == 0;
	packet_close_fds(fds, LEASE_FDS);
}

/* If the server is not reading, monitor_clean_up_cells() tries again. */
void monitor_recall_lease(struct monitor *k, struct monitored_cell *s)
{
	if (s->lease_is_out && !s->recall_was_sent)
		s->recall_was_sent = send_lease_message(k, MONITOR_RECALL, s, NULL, 0) == 0;
}

void monitor_accept_returned_lease(struct monitor *k, const struct monitor_cell_id *which)
{
	struct monitored_cell *s = which->number < MONITOR_CELLS_MAX ? &k->cell[which->number] : NULL;

	if (s && s->state == MONITORED_CELL_READY && s->generation == which->generation)
		s->lease_is_out = false;
}
