#include "early.h"

struct early early_run;
