/*
 * server_user.h - the users that are connected: each has a turn, whatever the number of its connections (struct
 * server_user)
 */
#pragma once
#include "server.h"

/* Adds a connection of this user; NULL with *e. Each successful call needs one server_user_leave(). */
must_use struct server_user *server_user_join(struct server *d, uid_t uid, struct err *e);
void                         server_user_leave(struct server *d, struct server_user *u);

size_t server_user_connections(const struct server *d, uid_t uid);
