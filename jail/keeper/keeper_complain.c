#include "keeper_parts.h"
#include "place.h"
#include "say.h"

void keeper_complain(const struct err *e)
{
	struct err said = *e;

	places_name_as_known(said.text);
	say("keeper: %s\n", said.text);
}
