#include "ranks.hpp"

#include <stdexcept>
#include <string>

namespace {

int size(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

} // namespace

Ranks::Ranks(MPI_Comm comm, int across) : comm_(comm), across_(across) {
    const int ranks = size(comm);
    if (across < 1 || ranks % across != 0)
        throw std::runtime_error(std::to_string(ranks) + " ranks make no grid with " + std::to_string(across) +
                                 " across the canal: the setting `across` has to divide their number");
    along_ = ranks / across;
    MPI_Comm_rank(comm, &rank_);
}

void Ranks::exchange_along(Lattice &lattice) {
    if (along_ == 1) return;
    MPI_Request requests[4];
    int open = 0;
    const int numbers = 5 * lattice.ny() * lattice.nz();
    const bool there[2] = {place_along() > 0, place_along() < along_ - 1};
    const int neighbour[2] = {rank_ - across_, rank_ + across_};
    constexpr Side sides[2] = {west, east};
    for (int side = 0; side < 2; ++side) {
        if (!there[side]) continue;
        got_[side].resize(std::size_t(numbers));
        MPI_Irecv(got_[side].data(), numbers, MPI_DOUBLE, neighbour[side], 0, comm_, &requests[open++]);
    }
    for (int side = 0; side < 2; ++side) {
        if (!there[side]) continue;
        sent_[side].resize(std::size_t(numbers));
        pack(lattice, lattice.leaving(sides[side]), sent_[side].data());
        MPI_Isend(sent_[side].data(), numbers, MPI_DOUBLE, neighbour[side], 0, comm_, &requests[open++]);
    }
    MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 2; ++side)
        if (there[side]) unpack(lattice, lattice.arriving(sides[side]), got_[side].data());
}

// The numbers that cross a south or north side are contiguous for each population, so MPI sends them without packing.
void Ranks::exchange_across(Lattice &lattice) {
    if (across_ == 1) return;
    MPI_Request requests[20];
    int open = 0;
    const bool there[2] = {place_across() > 0, place_across() < across_ - 1};
    const int neighbour[2] = {rank_ - 1, rank_ + 1};
    constexpr Side sides[2] = {south, north};
    for (int side = 0; side < 2; ++side) {
        if (!there[side]) continue;
        const auto arriving = lattice.arriving(sides[side]);
        for (int i = 0; i < 5; ++i)
            MPI_Irecv(arriving[i], lattice.run(), MPI_DOUBLE, neighbour[side], i, comm_, &requests[open++]);
    }
    for (int side = 0; side < 2; ++side) {
        if (!there[side]) continue;
        const auto leaving = lattice.leaving(sides[side]);
        for (int i = 0; i < 5; ++i)
            MPI_Isend(leaving[i], lattice.run(), MPI_DOUBLE, neighbour[side], i, comm_, &requests[open++]);
    }
    MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
}

void pack(const Lattice &lattice, const Lattice::Populations &populations, double *packed) {
    for (int y = 0; y < lattice.ny(); ++y)
        for (const double *population : populations)
            for (int z = 0; z < lattice.nz(); ++z)
                *packed++ = population[y * lattice.stride_y() + z * lattice.stride_z()];
}

void unpack(const Lattice &lattice, const Lattice::Populations &populations, const double *packed) {
    for (int y = 0; y < lattice.ny(); ++y)
        for (double *population : populations)
            for (int z = 0; z < lattice.nz(); ++z)
                population[y * lattice.stride_y() + z * lattice.stride_z()] = *packed++;
}
