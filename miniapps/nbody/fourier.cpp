#include "fourier.hpp"

#include <algorithm>

Fourier::Fourier(int n, MPI_Comm part) : n_(n), half_(n / 2 + 1), part_(part) {
    MPI_Comm_rank(part, &rank_);
    MPI_Comm_size(part, &ranks_);
    real_ = fftw_alloc_real(n);
    line_ = fftw_alloc_complex(n);
    to_half_ = fftw_plan_dft_r2c_1d(n, real_, line_, FFTW_ESTIMATE);
    from_half_ = fftw_plan_dft_c2r_1d(n, line_, real_, FFTW_ESTIMATE);
    ahead_ = fftw_plan_dft_1d(n, line_, line_, FFTW_FORWARD, FFTW_ESTIMATE);
    back_ = fftw_plan_dft_1d(n, line_, line_, FFTW_BACKWARD, FFTW_ESTIMATE);
}

Fourier::~Fourier() {
    for (fftw_plan plan : {to_half_, from_half_, ahead_, back_}) fftw_destroy_plan(plan);
    fftw_free(real_);
    fftw_free(line_);
}

namespace {

/// Transforms the line of values that lie `stride` apart.
void transform(fftw_plan plan, Complex *line, Complex *values, std::size_t n, std::size_t stride) {
    for (std::size_t i = 0; i < n; i++) line[i] = values[i * stride];
    fftw_execute(plan);
    for (std::size_t i = 0; i < n; i++) values[i * stride] = line[i];
}

} // namespace

std::vector<Complex> Fourier::forward(const std::vector<double> &planes) {
    const std::size_t n = n_, half = half_, own = end() - begin();
    Complex *line = reinterpret_cast<Complex *>(line_);
    std::vector<Complex> values(own * n * half), out(values.size());
    for (std::size_t row = 0; row < own * n; row++) {
        std::copy_n(&planes[row * n], n, real_);
        fftw_execute(to_half_);
        std::copy_n(line, half, &values[row * half]);
    }
    for (std::size_t x = 0; x < own; x++)
        for (std::size_t z = 0; z < half; z++) transform(ahead_, line, &values[x * n * half + z], n, half);
    // To each rank its rows: (y, z, x).
    std::size_t place = 0;
    for (std::size_t y = 0; y < n; y++)
        for (std::size_t z = 0; z < half; z++)
            for (std::size_t x = 0; x < own; x++) out[place++] = values[(x * n + y) * half + z];
    const std::vector<Complex> in = exchange(out);
    std::vector<Complex> waves(own * half * n);
    place = 0;
    for (int rank = 0; rank < ranks_; rank++)
        for (std::size_t row = 0; row < own * half; row++)
            for (int x = begin(rank); x < begin(rank + 1); x++) waves[row * n + x] = in[place++];
    for (std::size_t row = 0; row < own * half; row++) transform(ahead_, line, &waves[row * n], n, 1);
    return waves;
}

std::vector<double> Fourier::backward(const std::vector<Complex> &given) {
    const std::size_t n = n_, half = half_, own = end() - begin();
    Complex *line = reinterpret_cast<Complex *>(line_);
    std::vector<Complex> waves = given, out(waves.size());
    for (std::size_t row = 0; row < own * half; row++) transform(back_, line, &waves[row * n], n, 1);
    std::size_t place = 0;
    for (int rank = 0; rank < ranks_; rank++)
        for (std::size_t row = 0; row < own * half; row++)
            for (int x = begin(rank); x < begin(rank + 1); x++) out[place++] = waves[row * n + x];
    const std::vector<Complex> in = exchange(out);
    std::vector<Complex> values(own * n * half);
    place = 0;
    for (std::size_t y = 0; y < n; y++)
        for (std::size_t z = 0; z < half; z++)
            for (std::size_t x = 0; x < own; x++) values[(x * n + y) * half + z] = in[place++];
    for (std::size_t x = 0; x < own; x++)
        for (std::size_t z = 0; z < half; z++) transform(back_, line, &values[x * n * half + z], n, half);
    std::vector<double> planes(own * n * n);
    for (std::size_t row = 0; row < own * n; row++) {
        std::copy_n(&values[row * half], half, line);
        fftw_execute(from_half_);
        std::copy_n(real_, n, &planes[row * n]);
    }
    return planes;
}

/// All ranks exchange the blocks that lie in two of their slabs.
std::vector<Complex> Fourier::exchange(const std::vector<Complex> &out) {
    if (ranks_ == 1) return out;
    std::vector<int> counts(ranks_), places(ranks_ + 1);
    for (int rank = 0; rank < ranks_; rank++) {
        counts[rank] = (end() - begin()) * (begin(rank + 1) - begin(rank)) * half_;
        places[rank + 1] = places[rank] + counts[rank];
    }
    // The same blocks go out and come in, since planes and rows are cut alike.
    std::vector<Complex> in(places[ranks_]);
    MPI_Alltoallv(out.data(), counts.data(), places.data(), MPI_C_DOUBLE_COMPLEX, in.data(), counts.data(), places.data(),
                  MPI_C_DOUBLE_COMPLEX, part_);
    return in;
}

void Fourier::points(std::vector<int> &counts, std::vector<int> &places) const {
    for (int rank = 0; rank < ranks_; rank++) {
        places.push_back(begin(rank) * n_ * n_);
        counts.push_back((begin(rank + 1) - begin(rank)) * n_ * n_);
    }
}

std::vector<std::int64_t> Fourier::spread(const std::vector<std::int64_t> &all) const {
    std::vector<int> counts, places;
    points(counts, places);
    std::vector<std::int64_t> planes(counts[rank_]);
    MPI_Scatterv(all.data(), counts.data(), places.data(), MPI_INT64_T, planes.data(), counts[rank_], MPI_INT64_T, 0, part_);
    return planes;
}

std::vector<double> Fourier::collect(const std::vector<double> &planes) const {
    std::vector<int> counts, places;
    points(counts, places);
    std::vector<double> all(std::size_t(n_) * n_ * n_);
    MPI_Allgatherv(planes.data(), counts[rank_], MPI_DOUBLE, all.data(), counts.data(), places.data(), MPI_DOUBLE, part_);
    return all;
}
