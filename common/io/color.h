/*
 * color.h - color for people: in a terminal, unless NO_COLOR is set (no-color.org) or TERM is "dumb"
 *
 * Text from another process must be made plain (text_make_plain()) before it is printed between color_begin() and color_end().
 */
#pragma once
#include <stdio.h>

enum color { COLOR_GOOD, COLOR_WARNING, COLOR_BAD, COLOR_HEADING };

/* The escape sequence that begins the color on out; "" when out gets no colors. */
const char *color_begin(FILE *out, enum color color);
const char *color_end(FILE *out);
