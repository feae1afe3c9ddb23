/* keeper_ticket.c - cells that the door may use without the keeper */
#define _GNU_SOURCE
#include "keeper_parts.h"

#include "packet.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/un.h>

static bool is_pair(int fd, int wanted)
{
	struct sockaddr_un peer = { .sun_family = AF_UNSPEC };
	socklen_t          len = sizeof peer, size = sizeof(int);
	int                type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == wanted &&
	       getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sun_family == AF_UNIX && len == sizeof peer.sun_family;
}

bool keeper_is_pair(int fd)
{
	return is_pair(fd, SOCK_SEQPACKET);
}

bool keeper_is_stream(int fd)
{
	return is_pair(fd, SOCK_STREAM);
}

/* --- what a supervisor sends: it is trusted in its own profile only --- */

/* A write to a memory file never waits. A file of another kind could make the door wait for ever. */
static bool is_memory_file(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static bool is_sound(const int fds[TICKET_FDS])
{
	return keeper_is_pair(fds[TICKET_SUPERVISOR]) && keeper_is_pair(fds[TICKET_ORDERS]) &&
	       is_memory_file(fds[TICKET_ORDER_FILE]) && is_pipe(fds[TICKET_STDOUT]) && is_pipe(fds[TICKET_STDERR]) &&
	       is_pipe(fds[TICKET_STDIN]) && is_pipe(fds[TICKET_RESULT]);
}

/* --- what the door is told --- */

/* Does not wait for a door that is not reading: without a ticket the cell stays the keeper's to give. */
static int send_to_door(struct keeper *k, uint32_t kind, const struct kept_cell *s, const int *fds, size_t n)
{
	struct keeper_ticket message;

	memset(&message, 0, sizeof message);
	message.kind            = kind;
	message.cell.number     = (uint32_t)(s - k->cell);
	message.profile         = s->profile;
	message.cell.generation = s->generation;
	message.rootfs_since_s  = k->kept[s->profile].rootfs_since.tv_sec;
	message.rootfs_since_ns = k->kept[s->profile].rootfs_since.tv_nsec;
	message.missing         = s->group.missing;
	return packet_offer(k->door, &message, sizeof message, fds, n);
}

void keeper_give_ticket(struct keeper *k, struct kept_cell *s, int fds[TICKET_FDS])
{
	if (s->is_for_any_run && is_sound(fds))
		s->ticket_is_out = send_to_door(k, KEEPER_TICKET, s, fds, TICKET_FDS) == 0;
	packet_drop(fds, TICKET_FDS);
}

/* If the door is not reading, keeper_clean() tries again. */
void keeper_recall_ticket(struct keeper *k, struct kept_cell *s)
{
	if (s->ticket_is_out && !s->recall_was_sent)
		s->recall_was_sent = send_to_door(k, KEEPER_RECALL, s, NULL, 0) == 0;
}

void keeper_take_ticket_back(struct keeper *k, const struct keeper_cell_id *which)
{
	struct kept_cell *s = which->number < KEEPER_CELLS_MAX ? &k->cell[which->number] : NULL;

	if (s && s->state == KEPT_CELL_READY && s->generation == which->generation)
		s->ticket_is_out = false;
}
