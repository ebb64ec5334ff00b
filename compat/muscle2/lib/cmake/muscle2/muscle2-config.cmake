# MUSCLE 2's interfaces over titin: the target muscle2::muscle2.
include(CMakeFindDependencyMacro)
find_dependency(titin)

get_filename_component(_muscle2_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET muscle2::muscle2)
  add_library(muscle2::muscle2 STATIC IMPORTED)
  set_target_properties(muscle2::muscle2 PROPERTIES
    IMPORTED_LOCATION "${_muscle2_prefix}/lib/libmuscle2.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_muscle2_prefix}/include"
    INTERFACE_LINK_LIBRARIES titin::titin)
endif()
