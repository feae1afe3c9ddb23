/* zygote.h - where a zygote finds the file to count in, which no path in its file tree leads to */
#pragma once

enum { COVERAGE_ZYGOTE_FD = 100 };
