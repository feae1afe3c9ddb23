#include "manifest.h"
#include "tap.h"

#define SHA   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define FILES(rows) "{\"format\":1,\"files\":[" rows "]}"
#define DIR_A "{\"path\":\"/a\",\"type\":\"dir\",\"mode\":\"0755\"}"
#define FILE_B "{\"path\":\"/a/b\",\"type\":\"file\",\"mode\":\"0644\",\"size\":0,\"sha256\":\"" SHA "\"}"
#define LINK_C "{\"path\":\"/c\",\"type\":\"link\",\"mode\":\"0777\",\"target\":\"a/b\"}"

static const struct {
	const char   *name, *json;
	enum err_kind kind;
	const char   *says;
} rows[] = {
	/* sentence, file, answer, beginning of the error */
	{ "a manifest without a file is read", FILES(""), ERR_NONE, "" },
	{ "a directory, a file and a link are read", FILES(DIR_A "," FILE_B "," LINK_C), ERR_NONE, "" },
	{ "another format is refused", "{\"format\":2,\"files\":[]}", ERR_PROTOCOL, "format: expected 1" },
	{ "a manifest without files is refused", "{\"format\":1}", ERR_PROTOCOL, "files: expected" },
	{ "rows out of order are refused", FILES(LINK_C "," DIR_A), ERR_PROTOCOL, "files: row 2 is not in order" },
	{ "a path twice is refused", FILES(DIR_A "," DIR_A), ERR_PROTOCOL, "files: row 2 is not in order" },
	{ "a way out is refused", FILES("{\"path\":\"/../x\",\"type\":\"dir\",\"mode\":\"0755\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a device is refused", FILES("{\"path\":\"/x\",\"type\":\"other\",\"mode\":\"0755\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a link without a target is refused", FILES("{\"path\":\"/x\",\"type\":\"link\",\"mode\":\"0777\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a mode that is no number is refused", FILES("{\"path\":\"/x\",\"type\":\"dir\",\"mode\":\"rwxr\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a mode of five digits is refused", FILES("{\"path\":\"/x\",\"type\":\"dir\",\"mode\":\"10755\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a file without a sum is refused", FILES("{\"path\":\"/x\",\"type\":\"file\",\"mode\":\"0644\",\"size\":0}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a sum that is no digest is refused", FILES("{\"path\":\"/x\",\"type\":\"file\",\"mode\":\"0644\",\"size\":0,\"sha256\":\"0 /y\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a file without a size is refused", FILES("{\"path\":\"/x\",\"type\":\"file\",\"mode\":\"0644\",\"sha256\":\"" SHA "\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a directory with a size is refused", FILES("{\"path\":\"/x\",\"type\":\"dir\",\"mode\":\"0755\",\"size\":1}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a target that could forge a line is refused", FILES("{\"path\":\"/x\",\"type\":\"link\",\"mode\":\"0777\",\"target\":\"a\\nb\"}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a key that no row has is refused", FILES("{\"path\":\"/x\",\"type\":\"dir\",\"mode\":\"0755\",\"uid\":0}"), ERR_PROTOCOL, "files: row 1 is not sound" },
	{ "a row that is no object is refused", FILES("1"), ERR_PROTOCOL, "files: row 1 is not sound" },
};

static void check_digest(void)
{
	static const char text[] = "brig-tree 1\ndir 0755 /a\nfile 0644 0 " SHA " /a/b\nlink /c\ta/b\n";
	scoped_manifest   m      = { 0 };
	struct err        e      = { 0 };
	char              want[DIGEST_HEX + 1];

	tap_ok(digest_compute_of_bytes(text, strlen(text), want, &e) == 0 && manifest_parse(FILES(DIR_A "," FILE_B "," LINK_C), strlen(FILES(DIR_A "," FILE_B "," LINK_C)), &m, &e) == 0,
	       "the example of the manual is read");
	tap_is(m.digest, want, "the digest is the SHA-256 of the lines that the manual shows");
	tap_ok(digest_compute_of_bytes("", 0, want, &e) == 0 && strcmp(want, SHA) == 0, "the digest of nothing is the well-known one");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		scoped_manifest m  = { 0 };
		struct err      e  = { 0 };
		bool            ok = (manifest_parse(rows[i].json, strlen(rows[i].json), &m, &e) == 0) == (rows[i].kind == ERR_NONE);

		if (!tap_ok(ok && e.kind == rows[i].kind && strncmp(e.text, rows[i].says, strlen(rows[i].says)) == 0, "%s", rows[i].name))
			printf("#   %s: %s\n", err_kind_name(e.kind), e.text);
	}
	check_digest();
	return tap_done();
}
