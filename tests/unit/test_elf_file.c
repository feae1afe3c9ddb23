#include "elf_file.h"
#include "tap.h"

#include <elf.h>

/* A library in 1 KiB: headers, a dynamic section at 256, its texts at 512. */
struct file {
	unsigned char bytes[1024];
};

static void put(struct file *f, size_t at, const void *what, size_t n)
{
	memcpy(f->bytes + at, what, n);
}

static void make(struct file *f)
{
	static const char texts[] = "\0libc.so.6\0$ORIGIN/../lib\0libm.so.6"; /* at 1, 11, 26 */
	Elf64_Ehdr        h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN, .e_phoff = 64, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 };
	Elf64_Phdr        load    = { .p_type = PT_LOAD, .p_offset = 0, .p_vaddr = 0x10000, .p_filesz = 1024, .p_memsz = 1024 };
	Elf64_Phdr        dynamic = { .p_type = PT_DYNAMIC, .p_offset = 256, .p_vaddr = 0x10100, .p_filesz = 5 * sizeof(Elf64_Dyn) };
	Elf64_Dyn         d[]     = {
		{ DT_NEEDED, { 1 } }, { DT_STRTAB, { 0x10000 + 512 } }, { DT_RUNPATH, { 11 } }, { DT_NEEDED, { 26 } }, { DT_NULL, { 0 } },
	};

	*f = (struct file){ 0 };
	put(f, 0, &h, sizeof h);
	put(f, 64, &load, sizeof load);
	put(f, 64 + sizeof load, &dynamic, sizeof dynamic);
	put(f, 256, d, sizeof d);
	put(f, 512, texts, sizeof texts);
}

static void check_sound(const struct file *f)
{
	struct elf elf;
	struct err e = { 0 };

	tap_ok(elf_read(f->bytes, sizeof f->bytes, &elf, &e) == 0, "a small library is read");
	tap_ok(elf.n == 2 && strcmp(elf.needed[0], "libc.so.6") == 0 && strcmp(elf.needed[1], "libm.so.6") == 0, "its needs are told in their order");
	tap_is(elf.runpath, "$ORIGIN/../lib", "its runpath is told");
	tap_ok(elf.interpreter == NULL, "a library has no interpreter");
}

static const struct {
	const char *name;
	size_t      at;
	uint64_t    value;
	const char *says;
} rows[] = {
	/* sentence, where eight bytes are changed, to what, the error */
	{ "program headers beyond the end are refused", offsetof(Elf64_Ehdr, e_phoff), 2000, "program headers are outside" },
	{ "program headers at the end of the world are refused", offsetof(Elf64_Ehdr, e_phoff), UINT64_MAX - 8, "program headers are outside" },
	{ "a dynamic section beyond the end is refused", 64 + 56 + offsetof(Elf64_Phdr, p_offset), 1 << 20, "no string table" },
	{ "a dynamic section that wraps around is refused", 64 + 56 + offsetof(Elf64_Phdr, p_offset), UINT64_MAX - 4, "no string table" },
	{ "a string table that is not loaded is refused", 256 + 24, 0x90000, "string table is outside" },
	{ "a name beyond the end is refused", 256 + 8, 5000, "a name is outside" },
	{ "a name that wraps around is refused", 256 + 8, UINT64_MAX, "a name is outside" },
	{ "a segment that wraps around is refused", 64 + offsetof(Elf64_Phdr, p_offset), UINT64_MAX - 1, "string table is outside" },
};

static void check_row(size_t i)
{
	struct file f;
	struct elf  elf;
	struct err  e = { 0 };

	make(&f);
	put(&f, rows[i].at, &rows[i].value, sizeof rows[i].value);
	if (!tap_ok(elf_read(f.bytes, sizeof f.bytes, &elf, &e) < 0 && strstr(e.text, rows[i].says), "%s", rows[i].name))
		printf("#   %s\n", e.text);
}

/* Every length, and every byte turned over: an answer each time, and every name inside the bytes. */
static bool has_manners(const unsigned char *bytes, size_t len)
{
	struct elf elf;
	struct err e = { 0 };

	if (elf_read(bytes, len, &elf, &e) < 0)
		return e.text[0];
	for (size_t i = 0; i < elf.n; i++)
		if ((const unsigned char *)elf.needed[i] < bytes || (const unsigned char *)elf.needed[i] + strlen(elf.needed[i]) >= bytes + len)
			return false;
	return true;
}

static void check_manners(const struct file *f)
{
	bool cut = true, turned = true;

	for (size_t n = 0; n <= sizeof f->bytes; n++) {
		unsigned char *exact = malloc(n ? n : 1); /* so that a sanitizer sees one byte too far */

		memcpy(exact, f->bytes, n);
		cut = cut && has_manners(exact, n);
		free(exact);
	}
	for (size_t i = 0; i < sizeof f->bytes; i++) {
		struct file g = *f;

		g.bytes[i] ^= 0xff;
		turned = turned && has_manners(g.bytes, sizeof g.bytes);
	}
	tap_ok(cut, "a file cut at any length gets an answer");
	tap_ok(turned, "a file with any byte turned over gets an answer");
}

int main(void)
{
	struct file f;

	make(&f);
	check_sound(&f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(i);
	f.bytes[EI_CLASS] = ELFCLASS32;
	tap_ok(elf_read(f.bytes, sizeof f.bytes, &(struct elf){ 0 }, &(struct err){ 0 }) < 0, "a 32-bit file is refused");
	make(&f);
	check_manners(&f);
	return tap_done();
}
