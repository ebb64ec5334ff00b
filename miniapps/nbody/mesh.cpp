#include "mesh.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double particle_mass = 1 << 20; // in units of the density

/// The eight points around a particle, with their weights.
struct Cloud {
    int point[3][2];
    double weight[3][2];

    Cloud(const Particle &particle, int n) {
        for (int d = 0; d < 3; d++) {
            const Wide scaled = Wide(particle.x[d]) * n;
            point[d][0] = int(scaled >> 64);
            point[d][1] = (point[d][0] + 1) % n;
            weight[d][1] = double(Coordinate(scaled)) * unit;
            weight[d][0] = 1 - weight[d][1];
        }
    }
};

/// sin(x) / x to the fourth: the assignment of masses and that of forces, two of each in every direction.
double smoothing(int wave, int n) {
    if (wave == 0) return 1;
    const double x = pi * wave / n, s = std::sin(x) / x;
    return s * s * s * s;
}

} // namespace

Mesh::Mesh(int n, MPI_Comm part, double split, double strength)
    : n_(n), split_(split), strength_(strength), fourier_(n, part) {}

void Mesh::deposit(const std::vector<Particle> &particles) {
    density_.assign(plane() * n_, 0);
    for (const Particle &particle : particles) {
        const Cloud cloud(particle, n_);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                for (int k = 0; k < 2; k++) {
                    const double weight = cloud.weight[0][i] * cloud.weight[1][j] * cloud.weight[2][k];
                    density_[(std::size_t(cloud.point[0][i]) * n_ + cloud.point[1][j]) * n_ + cloud.point[2][k]] +=
                        std::int64_t(weight * particle_mass + 0.5);
                }
    }
    if (fourier_.ranks() == 1) return;
    const bool first = fourier_.rank() == 0;
    MPI_Reduce(first ? MPI_IN_PLACE : density_.data(), density_.data(), int(density_.size()), MPI_INT64_T, MPI_SUM, 0,
               fourier_.part());
}

// A packed density: for each plane a byte, the length of its numbers (0 for a plane without mass, 4 or 8), and then the planes.

void Mesh::pack(Bytes &message) const {
    const std::size_t head = message.size();
    message.resize(head + n_);
    for (int x = 0; x < n_; x++) {
        const std::int64_t *begin = &density_[x * plane()], *end = begin + plane();
        const std::int64_t most = *std::max_element(begin, end);
        const int width = most == 0 ? 0 : most < (std::int64_t(1) << 31) ? 4 : 8;
        message[head + x] = char(width);
        const std::size_t place = message.size();
        message.resize(place + width * plane());
        if (width == 8) std::memcpy(&message[place], begin, 8 * plane());
        if (width == 4)
            for (std::size_t i = 0; i < plane(); i++) {
                const std::int32_t value = std::int32_t(begin[i]);
                std::memcpy(&message[place + 4 * i], &value, 4);
            }
    }
}

void Mesh::add(const char *packed) {
    const char *place = packed + n_;
    for (int x = 0; x < n_; x++) {
        std::int64_t *sum = &density_[x * plane()];
        const int width = packed[x];
        for (std::size_t i = 0; i < plane() && width; i++, place += width) {
            std::int32_t narrow;
            std::int64_t wide;
            if (width == 4) {
                std::memcpy(&narrow, place, 4);
                sum[i] += narrow;
            } else {
                std::memcpy(&wide, place, 8);
                sum[i] += wide;
            }
        }
    }
}

void Mesh::solve() {
    const std::vector<std::int64_t> own = fourier_.spread(density_);
    std::vector<Complex> waves = fourier_.forward(std::vector<double>(own.begin(), own.end()));

    // From the masses at the points to the potential, with the factor of both transforms.
    const double factor = -strength_ / particle_mass;
    std::size_t place = 0;
    for (int y = fourier_.begin(); y < fourier_.end(); y++)
        for (int z = 0; z <= n_ / 2; z++) {
            const int ky = fourier_.wave(y);
            const double smooth = smoothing(ky, n_) * smoothing(z, n_);
            for (int x = 0; x < n_; x++, place++) {
                const int kx = fourier_.wave(x);
                const double k2 = 4 * pi * pi * (double(kx) * kx + double(ky) * ky + double(z) * z);
                waves[place] *= k2 > 0 ? factor * std::exp(-k2 * split_ * split_) / (k2 * smooth * smoothing(kx, n_)) : 0;
            }
        }
    potential_ = fourier_.collect(fourier_.backward(waves));
}

void Mesh::forces(const std::vector<Particle> &particles, std::vector<Vector> &acceleration) const {
    const double near = 2.0 / 3 * n_, far = -1.0 / 12 * n_;
    const std::size_t stride[3] = {plane(), std::size_t(n_), 1};
    for (std::size_t p = 0; p < particles.size(); p++) {
        const Cloud cloud(particles[p], n_);
        Vector force{};
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                for (int k = 0; k < 2; k++) {
                    const int at[3] = {cloud.point[0][i], cloud.point[1][j], cloud.point[2][k]};
                    const double weight = cloud.weight[0][i] * cloud.weight[1][j] * cloud.weight[2][k];
                    const std::size_t here = at[0] * stride[0] + at[1] * stride[1] + at[2];
                    for (int d = 0; d < 3; d++) {
                        const std::size_t rest = here - at[d] * stride[d];
                        const auto potential = [&](int by) { return potential_[rest + (at[d] + by + n_) % n_ * stride[d]]; };
                        force[d] -= weight * (near * (potential(1) - potential(-1)) + far * (potential(2) - potential(-2)));
                    }
                }
        for (int d = 0; d < 3; d++) acceleration[p][d] += force[d];
    }
}
