/*
 * backend_service.h - the keeper starts the runs
 *
 * The keeper is told the profiles, with their filters compiled, before the door
 * serves anybody; later it is told numbers only.
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
	struct ticket      *spent; /* to be closed when there is time, or NULL */
	struct keeper_stats stats;
	double              stats_ms; /* when they were asked for */
};

struct backend_service_wishes {
	const struct separation  *parts;
	const struct places      *places;
	const struct id_range    *ids;      /* of a service; a plain user's keeper finds its own */
	const struct profile_set *profiles; /* at most KEEPER_PROFILES_MAX */
	uint64_t                  ready;    /* cells to stand ready, for profiles that do not say it */
};

/* Tells the keeper everything and waits (10 s at most) until it serves. Takes the keeper's socket over; places outlive it. */
must_use int backend_service_open(struct backend_service *ret, const struct backend_service_wishes *w, struct err *e);
void         backend_service_close(struct backend_service *b); /* may be called on one that was not opened */
#define BACKEND_SERVICE_NONE ((struct backend_service){ .keeper = -1 })
/* self outlives it. */
struct backend backend_service(struct backend_service *self);
