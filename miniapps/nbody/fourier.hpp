// The Fourier transform of a mesh that is spread over the ranks of a part: each rank has planes along x, and in Fourier space
// rows along y. Each line is transformed on its own, from the same memory and by the same plan, so that the result has the same
// bits on any number of ranks.
#ifndef NBODY_FOURIER_HPP
#define NBODY_FOURIER_HPP

#include <complex>
#include <cstdint>
#include <fftw3.h>
#include <memory>
#include <mpi.h>
#include <vector>

using Complex = std::complex<double>;

class Fourier {
public:
    /// A mesh of n^3 points over the ranks of `part`.
    Fourier(int n, MPI_Comm part);
    ~Fourier();
    Fourier(const Fourier &) = delete;

    int size() const { return n_; }
    /// The first plane of this rank or, in Fourier space, the first y; the last one is before that of the next rank.
    int begin(int rank) const { return int(std::int64_t(n_) * rank / ranks_); }
    int begin() const { return begin(rank_); }
    int end() const { return begin(rank_ + 1); }
    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    MPI_Comm part() const { return part_; }
    /// The signed number of a wave, in waves a box.
    int wave(int i) const { return i <= n_ / 2 ? i : i - n_; }

    /// From planes (x, y, z) to waves (y, z, x), z up to n / 2. Without a factor.
    std::vector<Complex> forward(const std::vector<double> &planes);
    /// Back, without a factor.
    std::vector<double> backward(const std::vector<Complex> &waves);

    /// The planes of each rank, from all planes at the first rank.
    std::vector<std::int64_t> spread(const std::vector<std::int64_t> &all) const;
    /// All planes at all ranks, from those of each rank.
    std::vector<double> collect(const std::vector<double> &planes) const;

private:
    std::vector<Complex> exchange(const std::vector<Complex> &out);
    /// How many points each rank has, and where they begin.
    void points(std::vector<int> &counts, std::vector<int> &places) const;

    const int n_, half_;
    MPI_Comm part_;
    int rank_, ranks_;
    double *real_;
    fftw_complex *line_;
    fftw_plan to_half_, from_half_, ahead_, back_;
};

#endif
