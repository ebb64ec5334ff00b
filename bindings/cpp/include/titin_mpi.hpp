// titin with MPI, from C++17 and later: opens an instance that is a program of many ranks.
//
//     titin::Instance instance("f_init: initial_state; o_f: final_state", titin::mpi::ranks(MPI_COMM_WORLD));
//
// Compiled with the program's own MPI; libtitin does not know the library. titin.h says what ranks do together. titin.hpp does
// not include this header.
#ifndef TITIN_MPI_HPP
#define TITIN_MPI_HPP

#include <memory>
#include <utility>

#include "titin.hpp"
#include "titin_mpi.h"

namespace titin::mpi {

/// Options for an instance that the ranks of this communicator open together. The communicator is used while the instance is
/// opened, and not afterwards.
inline Options ranks(MPI_Comm comm, Options options = Options()) {
    const auto kept = std::make_shared<MPI_Comm>(comm);
    detail::check(titin_mpi_options(options.raw(), kept.get()));
    return std::move(options).keep(kept);
}

} // namespace titin::mpi

#endif
