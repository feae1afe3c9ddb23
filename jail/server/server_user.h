/*
 * server_user.h - the users that are connected: each has a turn, whatever the number of its connections (struct
 * server_user)
 */
#pragma once
#include "server.h"

/* Adds a connection of this user; NULL with *e. Each successful call needs one server_user_remove_connection(). */
must_use struct server_user *server_user_add_connection(struct server *d, uid_t uid, struct err *e);
void                         server_user_remove_connection(struct server *d, struct server_user *u);

size_t server_user_count_connections(const struct server *d, uid_t uid);
