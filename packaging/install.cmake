# What `cmake --install` puts in place; tests/run/test_install.py knows the list. Pages are installed by man/.
install(TARGETS brig brig-api brig-mcp brig-rootfs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET brigd)
  install(TARGETS brigd RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
endif()
if(TARGET monitor)
  install(TARGETS monitor supervisor proxy RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/brig)
endif()
install(TARGETS brig-doctor brig-metrics brig-mcp-http brig-mcp-remote RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/brig)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/profiles ${CMAKE_SOURCE_DIR}/recipes
  DESTINATION ${CMAKE_INSTALL_DATADIR}/brig
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ # whatever they are in the clone
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/jail/guest DESTINATION ${CMAKE_INSTALL_DATADIR}/brig # what brig-rootfs puts into every tree
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
  FILES_MATCHING PATTERN "*.py")
foreach(shell IN ITEMS "brig bash-completion/completions" "_brig zsh/site-functions" "brig.fish fish/vendor_completions.d") # where each looks below a prefix
  separate_arguments(shell)
  list(GET shell 0 file)
  list(GET shell 1 dir)
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/completions/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${dir})
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/packaging/apparmor/brig DESTINATION ${CMAKE_INSTALL_DATADIR}/brig/apparmor)
# Documentation for users: README, guides, the security model, examples. What contributors read is in the source alone.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
  PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/guide ${CMAKE_SOURCE_DIR}/docs/images DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs # pages link each other as in the clone
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(FILES ${CMAKE_SOURCE_DIR}/docs/security-model.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(CODE "set(docdir \"${CMAKE_INSTALL_DOCDIR}\")")
install(SCRIPT ${CMAKE_SOURCE_DIR}/packaging/plain_links.cmake)

# The client for Python. Debian's Python looks there below /usr/local, and below /usr in lib/python3/dist-packages.
cmake_path(GET PYTHON_INCLUDE FILENAME python)
set(BRIG_PYTHON_DIR lib/${python}/dist-packages CACHE STRING "Where the package brig of Python goes, below the prefix")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/brig DESTINATION ${BRIG_PYTHON_DIR}
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
configure_file(${CMAKE_SOURCE_DIR}/packaging/brig.pc.in ${CMAKE_BINARY_DIR}/brig.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/brig.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)

# For systemd. It reads lib/ of /usr and of /usr/local; pkg-config names /lib, wherever brig goes (docs/history/0050).
set(BRIG_SYSTEMD_DIR lib CACHE STRING "Below it: systemd/system, systemd/user, sysusers.d, tmpfiles.d")
foreach(manager system user)
  set(from ${CMAKE_SOURCE_DIR}/packaging/systemd)
  if(manager STREQUAL user)
    string(APPEND from /user)
  endif()
  set(services brigd brig-mcp)
  if(manager STREQUAL system)
    list(APPEND services brig-metrics brig-api) # a user types brig metrics, or brig-api
  endif()
  foreach(service ${services})
    configure_file(${from}/${service}.service.in ${CMAKE_BINARY_DIR}/systemd/${manager}/${service}.service @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/systemd/${manager}/${service}.service DESTINATION ${BRIG_SYSTEMD_DIR}/systemd/${manager})
  endforeach()
  install(FILES ${from}/brigd.socket ${CMAKE_SOURCE_DIR}/packaging/systemd/brig.slice DESTINATION ${BRIG_SYSTEMD_DIR}/systemd/${manager})
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/packaging/sysusers.d/brig.conf DESTINATION ${BRIG_SYSTEMD_DIR}/sysusers.d)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/tmpfiles.d/brig.conf DESTINATION ${BRIG_SYSTEMD_DIR}/tmpfiles.d)

# Binaries of a tree look for these beside it (common/io/paths.h). Links, so that an edit is seen without a build.
file(WRITE ${CMAKE_BINARY_DIR}/brig.mark "build tree of brig ${PROJECT_VERSION}\n")
foreach(dir profiles recipes jail/guest)
  cmake_path(GET dir FILENAME name)
  if(NOT IS_SYMLINK ${CMAKE_BINARY_DIR}/${name}) # a build tree may be older than this line
    file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/${name})
  endif()
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${dir} ${CMAKE_BINARY_DIR}/${name} SYMBOLIC)
endforeach()
