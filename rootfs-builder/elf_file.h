/*
 * elf_file.h - what a program or library needs: bytes in, names out.
 *
 * A pure function for untrusted bytes: every offset is checked before it is
 * used. The names point into the bytes. 64-bit little-endian only; any other
 * ELF file is refused.
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

bool         elf_has_magic(const void *bytes, size_t len); /* has the magic number */
must_use int elf_read(const void *bytes, size_t len, struct elf *ret, struct err *e);
