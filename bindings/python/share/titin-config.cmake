# find_package(titin): the targets
#   titin::titin          the shared library, for C and C++ (titin.h, titin.hpp)
#   titin::titin_static   the static library
#   titin::fortran        the Fortran module, compiled with the project's own compiler (if Fortran is enabled)
# and titin_FORTRAN_SOURCES, for those who compile it themselves.

get_filename_component(_titin_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET titin::titin)
  add_library(titin::titin SHARED IMPORTED)
  set_target_properties(titin::titin PROPERTIES
    IMPORTED_LOCATION "${_titin_prefix}/lib/libtitin.so"
    IMPORTED_SONAME "@SONAME@"
    INTERFACE_INCLUDE_DIRECTORIES "${_titin_prefix}/include")

  add_library(titin::titin_static STATIC IMPORTED)
  set_target_properties(titin::titin_static PROPERTIES
    IMPORTED_LOCATION "${_titin_prefix}/lib/libtitin.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_titin_prefix}/include"
    INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl")
endif()

set(titin_FORTRAN_SOURCES @FORTRAN@)
list(TRANSFORM titin_FORTRAN_SOURCES PREPEND "${_titin_prefix}/fortran/")

get_property(_titin_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if("Fortran" IN_LIST _titin_languages AND NOT TARGET titin_fortran)
  add_library(titin_fortran STATIC EXCLUDE_FROM_ALL ${titin_FORTRAN_SOURCES})
  set_target_properties(titin_fortran PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/titin_modules")
  target_include_directories(titin_fortran PUBLIC "${CMAKE_CURRENT_BINARY_DIR}/titin_modules")
  target_link_libraries(titin_fortran PUBLIC titin::titin)
  add_library(titin::fortran ALIAS titin_fortran)
endif()

unset(_titin_prefix)
unset(_titin_languages)
