/*
 * refusal_text.h - the HTTP reply to a program that does not reach what it asked for
 *
 * The status line has the whole sentence: it is all that most libraries show of a proxy's answer.
 */
#pragma once
#include "net_report.h"

/* The HTTP reply; text holds size. Returns its length. */
size_t refusal_print(enum net_reason reason, const char *host, uint16_t port, char *text, size_t size);
enum { REFUSAL_MAX = 2048 };
