/*
 * notify.h - what systemd is told: READY=1, STOPPING=1. One datagram each; nothing without NOTIFY_SOCKET.
 *
 * Opened early: a confined door can open no socket.
 */
#pragma once
#include "err.h"

/* *ret: a connected socket, or -1 when nobody wants to know. */
must_use int notify_open(int *ret, struct err *e);
void         notify_say(int sock, const char *words);
