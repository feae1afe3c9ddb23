/*
 * backend_service.h - the keeper starts the runs
 *
 * The keeper gets the profiles from the reader. The door names them by their numbers only.
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
	struct net_proxy   *proxy[KEEPER_KEPT_PROFILES_MAX]; /* by the profile's number; NULL: the keeper has announced none */
	struct ticket      *spent; /* a used ticket, which backend_settle() closes, or NULL */
	struct keeper_stats stats;
	double              stats_ms; /* CLOCK_MONOTONIC: the age of stats counts from then; in the future after the keeper did not answer */
};

/* Takes the keeper's socket over; places must outlive it. Before the first run the reader must have sent the profiles (rules_offer.h). */
must_use int backend_service_open(struct backend_service *ret, const struct separation *parts, const struct places *places, struct err *e);
void         backend_service_close(struct backend_service *b); /* may be called on BACKEND_SERVICE_NONE */
#define BACKEND_SERVICE_NONE ((struct backend_service){ .keeper = -1 })
/* self must outlive it. */
struct backend backend_service(struct backend_service *self);
