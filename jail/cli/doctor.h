/* doctor.h - brig doctor: what of this host a jail can be built with */
#pragma once

/* argv[0] is "doctor". 0: the default profile can run; 1: it cannot; 2: usage. */
int doctor_main(int argc, char **argv);
