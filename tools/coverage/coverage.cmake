# What -DBRIG_COVERAGE=ON adds (./dev coverage): clang's counters of source lines and branches, each program's in a file of its own that is
# mapped from its start to its end (docs/history/0041). Not counted: what has no C library, brig-init and jail/cli/early.
if(NOT CMAKE_C_COMPILER_ID STREQUAL Clang)
  message(FATAL_ERROR "BRIG_COVERAGE needs clang: cmake --preset coverage")
endif()
set(counted -fprofile-instr-generate=/dev/null -fcoverage-mapping "SHELL:-mllvm -runtime-counter-relocation") # /dev/null: of docgen
set(uncounted -fno-profile-instr-generate -fno-coverage-mapping)
target_compile_options(warnings INTERFACE ${counted})
target_link_options(warnings INTERFACE -fprofile-instr-generate)
target_compile_options(zygote PRIVATE ${counted})
target_link_options(zygote PRIVATE -fprofile-instr-generate)
set_property(SOURCE jail/cli/early/early.c APPEND PROPERTY COMPILE_OPTIONS ${uncounted})

# The files are named after their targets; tools/coverage.py makes them.
set(counters ${CMAKE_BINARY_DIR}/counters)
add_library(counts OBJECT tools/coverage/count.c)
set_target_properties(counts PROPERTIES POSITION_INDEPENDENT_CODE ON)
get_property(programs DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
foreach(program ${programs})
  get_target_property(type ${program} TYPE)
  if(type STREQUAL EXECUTABLE AND NOT program STREQUAL brig-init)
    add_library(counts_${program} OBJECT tools/coverage/program.c)
    set_target_properties(counts_${program} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_definitions(counts_${program} PRIVATE COVERAGE_FILE="${counters}/${program}")
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:counts_${program}> $<TARGET_OBJECTS:counts>)
    string(APPEND rows "${program} $<TARGET_FILE:${program}>\n")
  endif()
endforeach()

add_library(counts_zygote OBJECT tools/coverage/extension.c)
set_target_properties(counts_zygote PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_sources(zygote PRIVATE $<TARGET_OBJECTS:counts_zygote> $<TARGET_OBJECTS:counts>)
string(APPEND rows "zygote $<TARGET_FILE:zygote>\n")
add_library(counts_zygotes OBJECT tools/coverage/supervisor.c)
target_include_directories(counts_zygotes PRIVATE common common/json jail/spec/model jail/supervisor)
target_compile_definitions(counts_zygotes PRIVATE COVERAGE_ZYGOTE_FILE="${counters}/zygote")
target_sources(supervisor PRIVATE $<TARGET_OBJECTS:counts_zygotes>)
target_link_options(supervisor PRIVATE -Wl,--wrap=zygote_image_extension -Wl,--wrap=execve)

# Which program counts in which file.
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/counted CONTENT "${rows}")
