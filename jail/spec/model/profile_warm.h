/* profile_warm.h - how a service starts the runs of a profile */
#pragma once

/* NEVER: a new Python for each run. DEMAND: a fork of the zygote when a run is ordered. READY: a fork made ahead, in a ready cell. */
enum profile_warm { WARM_NEVER, WARM_DEMAND, WARM_READY };
