/*
 * color.h - color for people: in a terminal, unless NO_COLOR is set (no-color.org) or TERM is "dumb"
 *
 * The text between color() and color_end() is ours: what comes from somebody else is made plain first.
 */
#pragma once
#include <stdio.h>

enum color { COLOR_GOOD, COLOR_WARNING, COLOR_BAD, COLOR_HEADING };

/* What begins that color on out; "" where there shall be none. */
const char *color(FILE *out, enum color color);
const char *color_end(FILE *out);
