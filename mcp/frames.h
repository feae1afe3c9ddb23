/*
 * frames.h - a traceback as the author of a program needs it: of many library frames in a row the last one.
 *
 * Pure, and only about lines: what a program made up instead of a traceback comes out as it was.
 */
#pragma once

/* malloc'ed; NULL when memory is short. */
char *frames_brief(const char *traceback);
