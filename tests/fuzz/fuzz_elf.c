/* fuzz_elf.c - any bytes as a program: every name that comes out ends inside the bytes that went in */
#include "elf_file.h"
#include "fuzz.h"

static void must_lie_inside(const char *text, const uint8_t *data, size_t size)
{
	const char *first = (const char *)data;

	must(text >= first && text < first + size && memchr(text, 0, (size_t)(first + size - text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf elf;
	struct err e = { 0 };

	if (elf_read(data, size, &elf, &e) < 0) {
		must_say_why(&e);
		return 0;
	}
	must(elf_has_magic(data, size) && elf.n <= ELF_NEEDED_MAX);
	for (size_t i = 0; i < elf.n; i++)
		must_lie_inside(elf.needed[i], data, size);
	if (elf.interpreter)
		must_lie_inside(elf.interpreter, data, size);
	if (elf.runpath)
		must_lie_inside(elf.runpath, data, size);
	return 0;
}
