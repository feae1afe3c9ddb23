/*
 * zygote_image.h - the zygote's two files, carried in the keeper: its main.py and the extension that it loads
 *
 * Not in the rootfs: the extension walks the same table of steps as a program that is executed, and speaks the supervisor's structs; it is of the
 * same build or it is nothing.
 */
#pragma once
#include "program_env.h"

/* Sealed memory files, the caller's. preload: names of modules between commas, checked; env: a program's, where none is asked for. */
must_use int zygote_image_program(const char *preload, const struct program_env *env, uint32_t *len, struct err *e);
must_use int zygote_image_extension(uint32_t *len, struct err *e);
