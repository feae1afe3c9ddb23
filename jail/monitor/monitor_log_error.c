#include "monitor_parts.h"
#include "paths.h"
#include "stderr_line.h"

void monitor_log_error(const struct err *e)
{
	struct err message = *e;

	brig_paths_unmap_view(message.text);
	stderr_print_line("monitor: %s\n", message.text);
}
