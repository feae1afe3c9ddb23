#include "rate_limit.h"
#include "tap.h"

int main(void)
{
	static struct rates r;
	int                 free_ones = 0;
	char                name[16];

	tap_ok(rate_limit_take_call(&r, "a", 0, 0) == 0 && r.n == 0, "without a bound nobody is remembered");
	for (int i = 0; i < 6; i++)
		free_ones += rate_limit_take_call(&r, "a", 6, 1000) == 0;
	tap_ok(free_ones == 6, "who was quiet may have a minute's worth at once");
	tap_ok(rate_limit_take_call(&r, "a", 6, 1000) == 10000, "then it is told when the next one is there");
	tap_ok(rate_limit_take_call(&r, "b", 6, 1000) == 0, "another client does not wait for it");
	tap_ok(rate_limit_take_call(&r, "a", 6, 6000) > 0 && rate_limit_take_call(&r, "a", 6, 11000) == 0, "a sixth of a minute later there is one");
	tap_ok(rate_limit_take_call(&r, "a", 6, 11000) > 0, "and no more than one");
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "c%d", i);
		(void)!rate_limit_take_call(&r, name, 6, 20000 + i);
	}
	tap_ok(r.n == RATE_PRINCIPALS, "the list of clients is bounded");
	return tap_done();
}
