# Programs for the tests; the target "installed" leaves them out.

# One program per tests/unit/test_*.c; each prints a line per promise, which tests/conftest.py counts. ctest takes their exit status.
file(GLOB unit_tests CONFIGURE_DEPENDS tests/unit/test_*.c)
foreach(source ${unit_tests})
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE tests/unit)
  target_compile_definitions(${name} PRIVATE TEST_SOURCE="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} jail_daemon jail_supervisor jail_doctor jail_proxy common_client rootfs_floor mcp_http api warnings)
  add_test(NAME ${name} COMMAND ${name})
endforeach()
target_sources(test_zygote PRIVATE jail/zygote/module/zygote.c) # of no floor: a Python loads it
target_include_directories(test_zygote PRIVATE jail/zygote/module)

# A program under a policy and nothing else, for tests/jail.
add_executable(under_filter tests/jail/under_filter.c)
set_target_properties(under_filter PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(under_filter jail_seccomp jail_profile warnings)

# Servers that have gone mad, for tests/service.
foreach(name monitor_lies lease_lies)
  add_executable(${name} tests/service/${name}.c tests/service/mad_server.c)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} jail_monitor warnings)
endforeach()

# A run whose cell listens for brig-proxy, for tests/attack/test_network_cell.py, which is the proxy.
add_executable(network_cell tests/attack/network_cell.c)
set_target_properties(network_cell PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(network_cell jail_launcher jail_profile jail_seccomp warnings)

# How structs of the protocols between brig's processes are laid out, for tests that are one of these (tests/support/layout.py).
add_executable(layouts tests/support/layouts.c)
set_target_properties(layouts PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(layouts jail_child warnings)

# What brigd tells the journal, for tests/run/test_audit_journal.py.
add_executable(audit_once tests/run/audit_once.c)
set_target_properties(audit_once PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(audit_once jail_daemon warnings)

# What the official conformance suite wants of a server, for tests/mcp and tests/mcp, and a brigd that it finds beside itself.
# Its tables come before those of the library, which are in files of their own.
set(conformance ${CMAKE_BINARY_DIR}/conformance)
file(GLOB conformance_sources CONFIGURE_DEPENDS tests/mcp/conformance/*.c)
add_executable(mcp_conformance ${conformance_sources})
set_target_properties(mcp_conformance PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${conformance})
target_link_libraries(mcp_conformance mcp_http dep_SHA256 dep_MICROHTTPD warnings)
file(MAKE_DIRECTORY ${conformance})
file(CREATE_LINK ${CMAKE_BINARY_DIR}/bin/brigd ${conformance}/brigd SYMBOLIC)

# A brigd in which one step of the set-up fails, for tests/attack, and a brig that finds it beside itself. Its tables of steps come
# before those of the library, which are in a file of their own.
set(fails ${CMAKE_BINARY_DIR}/tests/fails)
add_executable(brigd_fails jail/daemon/main/brigd.c tests/attack/brigd_fails.c)
set_target_properties(brigd_fails PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${fails} OUTPUT_NAME brigd)
target_link_libraries(brigd_fails jail_daemon jail_cell warnings)
add_custom_command(OUTPUT ${fails}/brig COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:brig> ${fails}/brig DEPENDS brig brigd_fails)
add_custom_target(brig_beside_fails ALL DEPENDS ${fails}/brig)

# Programs that tests run others under, one per tests/*/helpers/*.c.
file(GLOB helpers CONFIGURE_DEPENDS tests/*/helpers/*.c)
foreach(source ${helpers})
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} common dep_SECCOMP warnings)
endforeach()

# What the benches measure with: bench/*.py tells them what to do. Not installed.
foreach(name warm_client spawn_client session_client)
  add_executable(${name} bench/${name}.c bench/orders.c)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_link_libraries(${name} common_client warnings)
endforeach()

# Fuzz targets: ./dev fuzz configures a second tree with clang and BRIG_FUZZ; their corpora are replayed under sanitizers.
if(BRIG_FUZZ OR BRIG_SANITIZE)
  include(tests/fuzz/fuzz.cmake)
endif()

# The sanitizers of whole programs report into a file: tests/release.
if(BRIG_SANITIZE)
  include(tests/release/sanitizers.cmake)
endif()
