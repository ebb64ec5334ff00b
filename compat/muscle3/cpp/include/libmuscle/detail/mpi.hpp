// Programs of many ranks: opening an instance with an MPI communicator and a root.
#ifndef TITIN_LIBMUSCLE_DETAIL_MPI_HPP
#define TITIN_LIBMUSCLE_DETAIL_MPI_HPP

#include <stdexcept>
#include <string>

#include <titin_mpi.h>

#include "libmuscle/detail/error.hpp"

namespace libmuscle {
namespace detail {

/// A communicator of the same ranks in which the root is rank 0, since titin's rank 0 sends and receives. Titin uses it
/// only while the instance is opened.
class RootFirst {
public:
    RootFirst(MPI_Comm communicator, int root) {
        int ranks, rank;
        if (MPI_Comm_size(communicator, &ranks) || MPI_Comm_rank(communicator, &rank))
            throw std::runtime_error("the MPI communicator has no ranks: is it MPI_COMM_NULL?");
        if (root < 0 || root >= ranks)
            throw std::logic_error("the root is rank " + std::to_string(root) + ", but the communicator has the ranks 0 to " +
                                   std::to_string(ranks - 1));
        is_root_ = rank == root;
        if (MPI_Comm_split(communicator, 0, (rank - root + ranks) % ranks, &ordered_))
            throw std::runtime_error("MPI_Comm_split has failed");
    }
    RootFirst(const RootFirst &) = delete;
    RootFirst &operator=(const RootFirst &) = delete;
    ~RootFirst() { MPI_Comm_free(&ordered_); }

    bool is_root() const { return is_root_; }
    /// As in MUSCLE3, the other ranks get no data.
    void set(titin_options *options) {
        check(titin_mpi_options(options, &ordered_));
        check(titin_options_receive(options, TITIN_RECEIVE_ROOT_ONLY));
    }

private:
    bool is_root_;
    MPI_Comm ordered_;
};

} // namespace detail
} // namespace libmuscle

#endif
