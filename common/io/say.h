/*
 * say.h - a line on standard error, for whoever reads it
 *
 * Or none: when the pipe behind it is full nobody waits. Who holds its other
 * end could stop a service at a moment of his choice by not reading
 * (CVE-2026-3888 used that to win a race).
 */
#pragma once
#include "defs.h"

/* At most 1000 bytes of it, in one write. */
void say(const char *fmt, ...) printf_like(1, 2);
