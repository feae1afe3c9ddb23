/*
 * notify.h - messages to systemd: READY=1, STOPPING=1, STATUS=. One datagram each; none without NOTIFY_SOCKET.
 *
 * Opened early: a confined server can open no socket.
 */
#pragma once
#include "err.h"

/* *ret: a connected socket, or -1 without NOTIFY_SOCKET. */
must_use int systemd_notify_open(int *ret, struct err *e);
void         systemd_notify_send(int sock, const char *words);
