/* launcher_serve.c - a launcher whose place is kept by somebody else: it builds ahead and waits for an order */
#define _GNU_SOURCE
#include "launcher_parts.h"

#include "clock.h"
#include "privilege.h"

#include <stdlib.h>
#include <unistd.h>

static int build(struct watch *w, struct err *e)
{
	if (w->signals < 0)
		return err_sys(e, "set-up step watch-signals");
	return cell_open(&w->cell, w->order, e) < 0 || privilege_drop(e) < 0 ? -1 : cell_let_go(&w->cell, e);
}

_Noreturn void launcher_serve(const struct launcher_post *post)
{
	struct watch w;
	struct err   e;

	launcher_begin(&w, NULL);
	w.served            = post->order;
	w.served.control_fd = post->control;
	w.served.limits     = &w.limits;
	w.limits            = *post->order.limits;
	w.order             = &w.served;
	w.control           = post->control;
	w.awaited           = post->awaited;
	w.asked             = clock_ms(CLOCK_MONOTONIC);
	w.cell.slot         = post->slot;
	w.cell.group        = post->group;
	w.cell.outer        = post->outer;
	w.cell.rootfs       = post->rootfs;
	w.wall_ms_max       = post->wall_ms_max;
	w.cell.warm.zygotes = post->zygote;
	w.cell.warm.zygote_pidfd = post->zygote_pidfd;
	w.cell.warm.up_fd   = post->zygote_up_fd;
	w.cell.warm.ahead   = post->zygote_ahead;
	w.cell.warm.starts  = post->zygote_starts;
	w.cell.net          = post->net;
	if (build(&w, &e) < 0)
		watch_fail(&w, EXIT_setup_failed, &e);
	else
		watch_cell(&w);
	watch_take_late_order(&w); /* the cell may have ended by itself */
	launcher_finish(&w);
	_exit(EXIT_SUCCESS);
}
