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

/* The environment has brig's own entries and none of a caller: nothing in it has to be escaped. */
int zygote_image_open_program(const char *preload, const struct program_env *env, uint32_t *len, struct err *e)
{
	char  *text = NULL;
	size_t size;
	FILE  *out = open_memstream(&text, &size);
	int    fd  = -1;

	if (!out)
		return err_set(e, ERR_LIMIT, "out of memory");
	fprintf(out, "PRELOAD = \"%s\"\nENVIRON = [", preload);
	for (size_t i = 0; env->entry[i]; i++)
		fprintf(out, "b\"%s\", ", env->entry[i]);
	fputs("]\n", out);
	fwrite(zygote_program_start, 1, (size_t)(zygote_program_end - zygote_program_start), out);
	if (fclose(out) != 0) {
		free(text);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	*len = (uint32_t)size;
	fd   = sealed_create("zygote", text, size, e);
	free(text);
	return fd;
}

int zygote_image_open_extension(uint32_t *len, struct err *e)
{
	*len = (uint32_t)(zygote_extension_end - zygote_extension_start);
	return sealed_create("zygote", zygote_extension_start, *len, e);
}
