/*
 * color.h - color for people: in a terminal, unless NO_COLOR is set (no-color.org) or TERM is "dumb"
 *
 * Text from another process must be made plain (text_make_plain()) before it is printed between color_start_code() and color_reset_code().
 */
#pragma once
#include <stdio.h>

enum color { COLOR_GOOD, COLOR_WARNING, COLOR_BAD, COLOR_HEADING };

/* The escape sequence that begins the color on out; "" when out gets no colors. */
const char *color_start_code(FILE *out, enum color color);
const char *color_reset_code(FILE *out);
