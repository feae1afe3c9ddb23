#include "elf_file.h"

#include <elf.h>
#include <string.h>

struct view {
	const char *bytes;
	size_t      len;
};

bool elf_has_magic(const void *bytes, size_t len)
{
	return len >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

static int err_elf(struct err *e, const char *what)
{
	return err_set(e, ERR_BAD_SPEC, "not a sound ELF file: %s", what);
}

/* Copies size bytes from offset, because nothing in the file need be aligned. False: they are outside of the file. */
static bool elf_read_at(const struct view *v, uint64_t offset, void *into, size_t size)
{
	if (offset > v->len || size > v->len - offset)
		return false;
	memcpy(into, v->bytes + offset, size);
	return true;
}

/* The text at offset; NULL if it does not end inside the file. */
static const char *string_at_offset(const struct view *v, uint64_t offset)
{
	if (offset >= v->len || !memchr(v->bytes + offset, 0, v->len - offset))
		return NULL;
	return v->bytes + offset;
}

static int read_elf_header(const struct view *v, Elf64_Ehdr *h, struct err *e)
{
	if (!elf_has_magic(v->bytes, v->len) || !elf_read_at(v, 0, h, sizeof *h))
		return err_elf(e, "too short");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_elf(e, "not 64-bit little-endian");
	if (h->e_phnum && h->e_phentsize != sizeof(Elf64_Phdr))
		return err_elf(e, "odd program headers");
	if (h->e_phoff > v->len || h->e_phnum * sizeof(Elf64_Phdr) > v->len - h->e_phoff)
		return err_elf(e, "its program headers are outside of it");
	return 0;
}

static bool read_program_header(const struct view *v, const Elf64_Ehdr *h, unsigned i, Elf64_Phdr *p)
{
	uint64_t offset;

	return !__builtin_add_overflow(h->e_phoff, (uint64_t)i * sizeof *p, &offset) &&
	       elf_read_at(v, offset, p, sizeof *p);
}

static bool find_program_header(const struct view *v, const Elf64_Ehdr *h, uint32_t type, Elf64_Phdr *p)
{
	for (unsigned i = 0; i < h->e_phnum; i++)
		if (read_program_header(v, h, i, p) && p->p_type == type)
			return true;
	return false;
}

/* The offset of a virtual address in the file. */
static bool address_to_offset(const struct view *v, const Elf64_Ehdr *h, uint64_t address, uint64_t *ret)
{
	Elf64_Phdr p = { 0 };

	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (!read_program_header(v, h, i, &p) || p.p_type != PT_LOAD)
			continue;
		if (address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
			return !__builtin_add_overflow(p.p_offset, address - p.p_vaddr, ret);
	}
	return false;
}

static bool read_dynamic_entry(const struct view *v, const Elf64_Phdr *p, size_t i, Elf64_Dyn *d)
{
	uint64_t offset;

	return (i + 1) * sizeof *d <= p->p_filesz && !__builtin_add_overflow(p->p_offset, i * sizeof *d, &offset) &&
	       elf_read_at(v, offset, d, sizeof *d) && d->d_tag != DT_NULL;
}

static int add_dynamic_entry(const struct view *v, uint64_t strings, const Elf64_Dyn *d, struct elf *elf, struct err *e)
{
	const char *text = NULL;
	uint64_t    at;

	if (d->d_tag != DT_NEEDED && d->d_tag != DT_RUNPATH && d->d_tag != DT_RPATH)
		return 0;
	if (!__builtin_add_overflow(strings, d->d_un.d_val, &at))
		text = string_at_offset(v, at);
	if (!text)
		return err_elf(e, "a name is outside of it");
	if (d->d_tag == DT_RUNPATH || (d->d_tag == DT_RPATH && !elf->runpath))
		elf->runpath = text;
	if (d->d_tag != DT_NEEDED)
		return 0;
	if (elf->n == ELF_NEEDED_MAX)
		return err_set(e, ERR_LIMIT, "needs more than %d libraries", ELF_NEEDED_MAX);
	elf->needed[elf->n++] = text;
	return 0;
}

static int read_needed_libraries(const struct view *v, const Elf64_Ehdr *h, struct elf *elf, struct err *e)
{
	Elf64_Phdr p;
	Elf64_Dyn  d;
	uint64_t   table = 0, strings = 0;

	if (!find_program_header(v, h, PT_DYNAMIC, &p))
		return 0; /* static, or an object file */
	for (size_t i = 0; !table && read_dynamic_entry(v, &p, i, &d); i++)
		table = d.d_tag == DT_STRTAB ? d.d_un.d_val : 0;
	if (!table)
		return err_elf(e, "no string table");
	if (!address_to_offset(v, h, table, &strings))
		return err_elf(e, "its string table is outside of it");
	for (size_t i = 0; read_dynamic_entry(v, &p, i, &d); i++)
		if (add_dynamic_entry(v, strings, &d, elf, e) < 0)
			return -1;
	return 0;
}

int elf_read(const void *bytes, size_t len, struct elf *ret, struct err *e)
{
	struct view v   = { bytes, len };
	struct elf  elf = { 0 };
	Elf64_Ehdr  h   = { 0 };
	Elf64_Phdr  p;

	if (read_elf_header(&v, &h, e) < 0 || read_needed_libraries(&v, &h, &elf, e) < 0)
		return -1;
	if (find_program_header(&v, &h, PT_INTERP, &p) && !(elf.interpreter = string_at_offset(&v, p.p_offset)))
		return err_elf(e, "its interpreter's name is outside of it");
	*ret = elf;
	return 0;
}
