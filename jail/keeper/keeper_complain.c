#include "keeper_parts.h"
#include "place.h"
#include "stderr_line.h"

void keeper_complain(const struct err *e)
{
	struct err message = *e;

	places_name_as_known(message.text);
	stderr_line("keeper: %s\n", message.text);
}
