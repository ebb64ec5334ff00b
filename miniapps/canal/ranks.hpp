// The ranks of one program: a grid of processes along and across the canal, and their exchange by MPI.
#pragma once

#include "lattice.hpp"

#include <mpi.h>
#include <vector>

// The beginning of part p of n things that are spread evenly.
inline int begin(int p, int parts, int n) { return p * (n / parts) + (p < n % parts ? p : n % parts); }

// Ranks count across the canal first: rank = along * (ranks across) + across.
class Ranks {
public:
    // The ranks across the canal, and along it all that remain.
    Ranks(MPI_Comm comm, int across);

    MPI_Comm comm() const { return comm_; }
    int rank() const { return rank_; }
    int count() const { return along_ * across_; }
    int along() const { return along_; }
    int across() const { return across_; }
    int place_along() const { return rank_ / across_; }
    int place_across() const { return rank_ % across_; }
    // Whether this rank is at the west or the east end of the section.
    bool is_at(Side end) const { return place_along() == (end == west ? 0 : along_ - 1); }

    // Exchanges populations over the cuts along the canal, then over those across it. The second exchange also passes on to the
    // ranks over the corners what the first, and a seam to another section, have brought.
    void exchange_along(Lattice &lattice);
    void exchange_across(Lattice &lattice);

private:
    MPI_Comm comm_;
    int rank_, along_, across_;
    std::vector<double> sent_[2], got_[2];
};

// Copies the five populations of a west or east side into memory in one piece, (ny, 5, nz), or from there.
void pack(const Lattice &lattice, const Lattice::Populations &populations, double *packed);
void unpack(const Lattice &lattice, const Lattice::Populations &populations, const double *packed);
