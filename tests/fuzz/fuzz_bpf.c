/* fuzz_bpf.c - any bytes as a filter from the cache, behind the data it runs on: what is accepted ends, with one of its answers */
#include "bpf.h"
#include "fuzz.h"

static void must_answer(const struct sock_filter *insn, size_t n, const struct seccomp_data *data)
{
	uint32_t answer = bpf_run(insn, n, data);

	for (size_t i = 0; i < n; i++)
		if (insn[i].code == (BPF_RET | BPF_K) && insn[i].k == answer)
			return;
	must(!"answers with one of its returns");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seccomp_data in;
	size_t              n = size < sizeof in ? 0 : (size - sizeof in) / sizeof(struct sock_filter);
	struct sock_filter *insn = malloc(n * sizeof *insn + 1); /* its own block: a step outside is seen */

	must(insn);
	if (n) {
		memcpy(&in, data, sizeof in);
		memcpy(insn, data + sizeof in, n * sizeof *insn);
	}
	const char *wrong = bpf_check(insn, n);
	must(!wrong || *wrong);
	must(wrong || (n > 0 && n <= BPF_PROGRAM_MAX));
	if (!wrong)
		must_answer(insn, n, &in);
	free(insn);
	return 0;
}
