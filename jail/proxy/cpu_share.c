#include "cpu_share.h"

enum { BESIDE_OTHERS = CPU_WHOLE / 4, NS_OF_MS = 1000 * 1000, PASSED_MAX_NS = 1000 * NS_OF_MS };

uint64_t cpu_share_for_runs(uint64_t cpus, uint64_t runs)
{
	uint64_t most = runs > 1 ? BESIDE_OTHERS : CPU_WHOLE;

	return cpus < most ? cpus : most;
}

void cpu_share_init(struct cpu_share *s, int64_t now_ns)
{
	*s = (struct cpu_share){ now_ns, CPU_BURST_NS };
}

int64_t cpu_share_spend(struct cpu_share *s, uint64_t milli, int64_t now_ns, int64_t used_ns)
{
	int64_t share  = (int64_t)milli;
	int64_t passed = now_ns - s->at_ns;

	s->at_ns = now_ns;
	s->left_ns += (passed < PASSED_MAX_NS ? passed : PASSED_MAX_NS) * share / CPU_WHOLE;
	if (s->left_ns > CPU_BURST_NS)
		s->left_ns = CPU_BURST_NS;
	s->left_ns -= used_ns;
	if (share == CPU_WHOLE && s->left_ns < 0)
		s->left_ns = 0;
	return s->left_ns < 0 ? -s->left_ns * CPU_WHOLE / share / NS_OF_MS + 1 : 0;
}
