/*
 * backend_service.h - the keeper starts the runs
 *
 * The keeper has the profiles from the reader; this side sends it their numbers only.
 */
#pragma once
#include "backend.h"
#include "id_range.h"
#include "loop.h"
#include "separate.h"
#include "ticket.h"

struct backend_service {
	int                 keeper;
	pid_t               pid;
	enum keeper_mode    mode;
	const struct places *places;
	struct ticket_box   tickets;
	struct net_proxy   *proxy[KEEPER_KEPT_PROFILES_MAX]; /* of each profile, by number; NULL: the keeper has told of none */
	struct ticket      *spent; /* to be closed when there is time, or NULL */
	struct keeper_stats stats;
	double              stats_ms; /* when they were asked for */
};

/* Takes the keeper's socket over; places outlive it. The reader sends it the profiles before the first run (rules_offer.h). */
must_use int backend_service_open(struct backend_service *ret, const struct separation *parts, const struct places *places, struct err *e);
void         backend_service_close(struct backend_service *b); /* may be called on one that was not opened */
#define BACKEND_SERVICE_NONE ((struct backend_service){ .keeper = -1 })
/* self outlives it. */
struct backend backend_service(struct backend_service *self);
