/* doctor.h - brig doctor: tests what this host offers to jails */
#pragma once

/* argv[0] is "doctor". 0: the default profile can run; 1: it cannot; 2: usage. */
int doctor_main(int argc, char **argv);
