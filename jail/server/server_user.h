/* server_user.h - the users that are connected: each has a turn, whatever the number of its connections (struct door_user) */
#pragma once
#include "server.h"

/* Adds a connection of this user; NULL with *e. Each successful call needs one door_user_leave(). */
must_use struct door_user *door_user_join(struct door *d, uid_t uid, struct err *e);
void                       door_user_leave(struct door *d, struct door_user *u);

size_t door_user_connections(const struct door *d, uid_t uid);
