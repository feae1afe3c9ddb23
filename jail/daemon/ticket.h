/*
 * ticket.h - the cells that the door may use without asking the keeper
 *
 * They come from the keeper and are of one profile each. The caller that takes one
 * owns it, and its descriptors. The oldest is taken first: its fork has had the time
 * to rehearse, which makes its first run fast (jail/zygote/module/main.py).
 */
#pragma once
#include "keeper_protocol.h"
#include "launch.h"
#include "order_file.h"

#include <sys/queue.h>

struct ticket {
	TAILQ_ENTRY(ticket) link;
	struct keeper_ticket message;
	int                  fd[TICKET_FDS];
};

struct ticket_box {
	TAILQ_HEAD(ticket_list, ticket) of[KEEPER_KEPT_PROFILES_MAX]; /* the oldest first */
	size_t n, most;
};

/* files: the process's limit of open files; tickets get a quarter, the rest is for clients. */
void ticket_box_init(struct ticket_box *b, uint64_t files);
/* Takes the descriptors over. They are closed if there is no room, or no such profile: the supervisor sees that, and tells the keeper. */
void           ticket_box_put(struct ticket_box *b, const struct keeper_ticket *message, int fds[TICKET_FDS]);
struct ticket *ticket_box_take(struct ticket_box *b, unsigned profile); /* NULL: there is none */
uint64_t       ticket_box_count(const struct ticket_box *b, unsigned profile);
/* A ticket that was taken becomes the next one to be taken. */
void ticket_box_put_back(struct ticket_box *b, struct ticket *t);
/* Closes the ticket that the keeper has recalled, if it is still here. */
void ticket_box_void(struct ticket_box *b, const struct keeper_ticket *message);
void ticket_box_done(struct ticket_box *b);

/*
 * Sends the order to the supervisor and to the fork that waits. tools: the program's end of their socket, if the order has one;
 * borrowed. False: the ticket is void, and nothing has begun.
 */
must_use bool ticket_use(const struct ticket *t, const struct launch_order *order, const char *exec_args, const char *code,
			 int tools);
void ticket_free(struct ticket *t); /* closes the descriptors that were not taken; t may be NULL */
