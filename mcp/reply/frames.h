/*
 * frames.h - a traceback for the author of a program: of several library frames in a row only the last is kept.
 *
 * Pure. It looks at lines only: a text of a program that is no traceback is not changed.
 */
#pragma once

/* malloc'ed; NULL when memory is short. */
char *frames_shorten_traceback(const char *traceback);
