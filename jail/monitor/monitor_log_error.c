#include "monitor_parts.h"
#include "paths.h"
#include "stderr_line.h"

void monitor_log_error(const struct err *e)
{
	struct err message = *e;

	brig_paths_name_as_known(message.text);
	stderr_line("monitor: %s\n", message.text);
}
