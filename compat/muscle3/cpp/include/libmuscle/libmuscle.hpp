// MUSCLE3's C++ interface over titin: programs of MUSCLE3 compile with these headers, and run in a run of titin.
//
//     c++ -std=c++14 $(titin config --compat muscle3 --cflags) program.cpp $(titin config --compat muscle3 --libs)
//
// Programs with MPI define MUSCLE_ENABLE_MPI, for all of their files.
#ifndef TITIN_LIBMUSCLE_HPP
#define TITIN_LIBMUSCLE_HPP

#include <ymmsl/ymmsl.hpp>

#include "libmuscle/data.hpp"
#include "libmuscle/instance.hpp"
#include "libmuscle/instance_flags.hpp"
#include "libmuscle/message.hpp"
#include "libmuscle/ports_description.hpp"
#include "libmuscle/util.hpp"

#endif
