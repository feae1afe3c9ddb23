#define _GNU_SOURCE
#include "zygote_image.h"

#include "sealed.h"

#include <stdio.h>
#include <stdlib.h>

__asm__(".section .rodata\n"
	".global zygote_program_start, zygote_program_end, zygote_extension_start, zygote_extension_end\n"
	".balign 16\n"
	"zygote_program_start:\n"
	".incbin \"" BRIG_ZYGOTE_PROGRAM "\"\n"
	"zygote_program_end:\n"
	".balign 16\n"
	"zygote_extension_start:\n"
	".incbin \"" BRIG_ZYGOTE_EXTENSION "\"\n"
	"zygote_extension_end:\n"
	".previous\n");
extern const char zygote_program_start[] __attribute__((visibility("hidden")));
extern const char zygote_program_end[] __attribute__((visibility("hidden")));
extern const char zygote_extension_start[] __attribute__((visibility("hidden")));
extern const char zygote_extension_end[] __attribute__((visibility("hidden")));

int zygote_image_program(const char *preload, uint32_t *len, struct err *e)
{
	int   room = (int)(zygote_program_end - zygote_program_start), n, fd;
	char *text;

	n = asprintf(&text, "PRELOAD = \"%s\"\n%.*s", preload, room, zygote_program_start);
	if (n < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	*len = (uint32_t)n;
	fd   = sealed_open("zygote", text, *len, e);
	free(text);
	return fd;
}

int zygote_image_extension(uint32_t *len, struct err *e)
{
	*len = (uint32_t)(zygote_extension_end - zygote_extension_start);
	return sealed_open("zygote", zygote_extension_start, *len, e);
}
