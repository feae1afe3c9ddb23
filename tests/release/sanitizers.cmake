# What -DBRIG_SANITIZE=ON adds to the programs that get installed: their sanitizers report into a file (tests/release/reports.c).
# Not sanitized: brig-init, which has no C library, and jail/cli/early, which runs before one. The zygote's module is loaded by a Python
# without ASan's runtime: it has the checks of UBSan that need none, and traps where one fails.
add_library(reports OBJECT tests/release/reports.c)
set_target_properties(reports PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_options(reports PRIVATE -O1 -Wall -Wextra)
target_compile_definitions(reports PRIVATE REPORTS_FILE="/tmp/brig-sanitizer-reports")
foreach(program brig brig-doctor brig-metrics supervisor monitor proxy brigd brig-rootfs brig-mcp brig-mcp-http brig-mcp-remote brig-api brigd_fails mcp_conformance goes_wrong)
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:reports>)
endforeach()
target_compile_options(zygote PRIVATE -fsanitize=undefined -fsanitize-undefined-trap-on-error)
