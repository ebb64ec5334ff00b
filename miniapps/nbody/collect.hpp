// Vectors of different lengths between the ranks of a part. Their elements are copied as bytes.
#ifndef NBODY_COLLECT_HPP
#define NBODY_COLLECT_HPP

#include <cstdint>
#include <mpi.h>
#include <numeric>
#include <vector>

/// All ranks send each other vectors.
template <class T> std::vector<T> all_to_all(const std::vector<std::vector<T>> &to, MPI_Comm ranks) {
    const int count = int(to.size());
    std::vector<int> sizes(count), places(count), in_sizes(count), in_places(count);
    std::vector<T> out;
    for (int rank = 0; rank < count; rank++) {
        places[rank] = int(out.size() * sizeof(T));
        sizes[rank] = int(to[rank].size() * sizeof(T));
        out.insert(out.end(), to[rank].begin(), to[rank].end());
    }
    if (count == 1) return out;
    MPI_Alltoall(sizes.data(), 1, MPI_INT, in_sizes.data(), 1, MPI_INT, ranks);
    std::partial_sum(in_sizes.begin(), in_sizes.end() - 1, in_places.begin() + 1);
    std::vector<T> in((in_places.back() + in_sizes.back()) / sizeof(T));
    MPI_Alltoallv(out.data(), sizes.data(), places.data(), MPI_BYTE, in.data(), in_sizes.data(), in_places.data(), MPI_BYTE,
                  ranks);
    return in;
}

/// The vectors of all ranks, at the first one.
template <class T> std::vector<T> gather(const std::vector<T> &own, MPI_Comm ranks, int count) {
    if (count == 1) return own;
    const int size = int(own.size() * sizeof(T));
    std::vector<int> sizes(count), places(count);
    MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, ranks);
    std::partial_sum(sizes.begin(), sizes.end() - 1, places.begin() + 1);
    std::vector<T> all((places.back() + sizes.back()) / sizeof(T));
    MPI_Gatherv(own.data(), size, MPI_BYTE, all.data(), sizes.data(), places.data(), MPI_BYTE, 0, ranks);
    return all;
}

/// The first rank's vector, for all.
template <class T> void broadcast(std::vector<T> &values, MPI_Comm ranks) {
    std::uint64_t size = values.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, ranks);
    values.resize(size);
    MPI_Bcast(values.data(), int(size * sizeof(T)), MPI_BYTE, 0, ranks);
}

#endif
