/*
 * elf_file.h - what a program or library needs: bytes in, names out.
 *
 * Pure, and made for bytes nobody trusts: every offset is checked before it is
 * used. The names point into the bytes. 64-bit little-endian only; anything
 * else that begins like an ELF file is refused.
 */
#pragma once
#include "err.h"

#define ELF_NEEDED_MAX 64

struct elf {
	const char *needed[ELF_NEEDED_MAX];
	size_t      n;
	const char *interpreter; /* or NULL */
	const char *runpath; /* DT_RUNPATH, else DT_RPATH, else NULL */
};

bool         elf_is(const void *bytes, size_t len); /* begins like one */
must_use int elf_read(const void *bytes, size_t len, struct elf *ret, struct err *e);
