/*
 * program_text.h - a stranger's descriptor that should be a Python program.
 *
 * Never read(), which could wait or move an offset that somebody else has too:
 * a sealed memory file is mapped, and cannot change or shrink under us.
 */
#pragma once
#include "denial.h"

/* Sealed, from 1 byte to 8 MiB, UTF-8 without NUL. */
must_use int program_text_check(int fd, size_t *len, struct denial *why);
