#include "zygote_image.h"

#include "sealed.h"

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

static int open_bytes(const char *from, const char *to, uint32_t *len, struct err *e)
{
	*len = (uint32_t)(to - from);
	return sealed_open("zygote", from, *len, e);
}

int zygote_image_program(uint32_t *len, struct err *e)
{
	return open_bytes(zygote_program_start, zygote_program_end, len, e);
}

int zygote_image_extension(uint32_t *len, struct err *e)
{
	return open_bytes(zygote_extension_start, zygote_extension_end, len, e);
}
