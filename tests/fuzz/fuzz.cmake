# What is made of tests/fuzz/fuzz_NAME.c:
#   fuzz_NAME    with libFuzzer, when BRIG_FUZZ is on (./dev fuzz NAME). Everything it links is instrumented too.
#   replay_NAME  without, for the files of the corpus (tests/fuzz/test_corpus.py); with BRIG_SANITIZE.
# Both begin with what the tables say: fuzz_seeds writes a seed for every row, and a dictionary.
set(watch -fsanitize=address,undefined -fno-sanitize-recover=all)
if(BRIG_FUZZ)
  target_compile_options(warnings INTERFACE ${watch} -fsanitize=fuzzer-no-link -O1)
  target_link_options(warnings INTERFACE ${watch})
endif()

function(fuzz_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE tests/fuzz)
  target_link_libraries(${name} jail_cli jail_daemon jail_proxy rootfs_floor mcp mcp_http mcp_remote api warnings)
endfunction()

fuzz_program(fuzz_seeds tests/fuzz/seeds.c)
file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzzers})
  cmake_path(GET source STEM name)
  if(BRIG_FUZZ)
    fuzz_program(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    string(REPLACE fuzz_ replay_ name ${name})
    fuzz_program(${name} ${source} tests/fuzz/replay.c)
  endif()
endforeach()
