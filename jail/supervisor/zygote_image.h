/*
 * zygote_image.h - the zygote's two files, carried in the supervisor: its main.py and the extension that it loads
 *
 * Not in the rootfs: the extension has the same tables of steps as a forker, and exchanges structs with the
 * supervisor, so both must be of the same build.
 */
#pragma once
#include "program_env.h"

/* Sealed memory files, the caller's. preload: modules between commas, checked; env: if a program asks for no other. */
must_use int zygote_image_open_program(const char *preload, const struct program_env *env, uint32_t *len,
				       struct err *e);
must_use int zygote_image_open_extension(uint32_t *len, struct err *e);
