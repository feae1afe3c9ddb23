# What `cmake --install` puts in place; tests/cli/test_install.py knows the list. Pages are installed by man/.
install(TARGETS brig brig-rootfs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/profiles ${CMAKE_SOURCE_DIR}/recipes
  DESTINATION ${CMAKE_INSTALL_DATADIR}/brig
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ # whatever they are in the clone
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/apparmor/brig DESTINATION ${CMAKE_INSTALL_DATADIR}/brig/apparmor)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/docs/decisions.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Binaries of a build tree look for these beside it. Links, so that an edit is seen without a build.
foreach(dir profiles recipes)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${dir} ${CMAKE_BINARY_DIR}/${dir} SYMBOLIC)
endforeach()
