# find_package(libmuscle): the targets
#   libmuscle::libmuscle      MUSCLE3's C++ interface over titin
#   libmuscle::libmuscle_mpi  the same for programs with MPI, which link MPI::MPI_CXX themselves
#   libmuscle::ymmsl          the classes of yMMSL
# It needs the package titin: -Dtitin_DIR=$(titin config --cmake-dir).

include(CMakeFindDependencyMacro)
find_dependency(titin)
get_filename_component(_libmuscle_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

foreach(_libmuscle_target ymmsl libmuscle libmuscle_mpi)
  if(NOT TARGET libmuscle::${_libmuscle_target})
    add_library(libmuscle::${_libmuscle_target} INTERFACE IMPORTED)
    set_target_properties(libmuscle::${_libmuscle_target} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${_libmuscle_prefix}/include"
      INTERFACE_COMPILE_FEATURES cxx_std_14
      INTERFACE_LINK_LIBRARIES titin::titin)
  endif()
endforeach()
set_target_properties(libmuscle::libmuscle_mpi PROPERTIES INTERFACE_COMPILE_DEFINITIONS MUSCLE_ENABLE_MPI)

unset(_libmuscle_prefix)
unset(_libmuscle_target)
