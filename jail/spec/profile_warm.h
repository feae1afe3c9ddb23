/* profile_warm.h - how a service starts the runs of a profile */
#pragma once

/* A new Python for each; a fork of one that stands by, when there is an order, or before. */
enum profile_warm { WARM_NEVER, WARM_DEMAND, WARM_READY };
