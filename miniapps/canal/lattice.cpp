#include "lattice.hpp"

#include <cmath>
#include <cstring>

namespace {

// D3Q19: direction and weight of each population. 0 is at rest; each odd one is followed by its opposite.
constexpr int cx[19] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
constexpr int cy[19] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
constexpr int cz[19] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
constexpr double weight(int i) { return i == 0 ? 1. / 3 : i < 7 ? 1. / 18 : 1. / 36; }
constexpr int back(int i) { return i == 0 ? 0 : i % 2 ? i + 1 : i - 1; }

} // namespace

Lattice::Lattice(const Block &block)
    : block_(block), nx_(block.x1 - block.x0), ny_(block.y1 - block.y0), nz_(block.nz), pitch_(nx_ + 2),
      omega_(1.0 / (3.0 * block.viscosity + 0.5)) {
    // An odd number of cache lines, so that the 38 streams of a step do not use the same few sets of the cache.
    const std::ptrdiff_t line = 64 / sizeof(double), points = std::ptrdiff_t(ny_ + 2) * run();
    size_ = ((points + line - 1) / line | 1) * line;
    memory_.resize(std::size_t(2 * 19 * size_));
    for (int half = 0; half < 2; ++half) // at rest, density 1
        for (int i = 0; i < 19; ++i)
            for (std::ptrdiff_t k = 0; k < size_; ++k) memory_[std::size_t((19 * half + i) * size_ + k)] = weight(i);
}

Lattice::Populations Lattice::populations(int half, int way_x, int way_y, std::ptrdiff_t first) {
    Populations found{};
    std::size_t count = 0;
    for (int i = 1; i < 19; ++i)
        if (way_x ? cx[i] == way_x : cy[i] == way_y) found[count++] = memory_.data() + (half + i) * size_ + first;
    return found;
}

Lattice::Populations Lattice::leaving(Side side) {
    switch (side) {
    case west: return populations(leaving_, -1, 0, at(0, 0, 0));
    case east: return populations(leaving_, 1, 0, at(nx_ - 1, 0, 0));
    case south: return populations(leaving_, 0, -1, at(-1, 0, 0));
    default: return populations(leaving_, 0, 1, at(-1, ny_ - 1, 0));
    }
}

Lattice::Populations Lattice::arriving(Side side) {
    switch (side) {
    case west: return populations(now_, 1, 0, at(-1, 0, 0));
    case east: return populations(now_, -1, 0, at(nx_, 0, 0));
    case south: return populations(now_, 0, 1, at(-1, -1, 0));
    default: return populations(now_, 0, -1, at(-1, ny_, 0));
    }
}

void Lattice::begin(bool west_side, bool east_side) {
    if (block_.x0 == 0) end_wall(0, -1);
    if (block_.x1 == block_.nx) end_wall(nx_ - 1, 1);
    first_ = west_side ? 1 : 0;
    last_ = east_side ? nx_ - 1 : nx_;
    if (west_side) rows(0, 1);
    if (east_side) rows(nx_ - 1, nx_);
    leaving_ = 19 - now_;
}

void Lattice::finish() {
    rows(first_, last_);
    now_ = leaving_;
}

void Lattice::rows(int first, int last) {
    if (first >= last) return;
    for (int y = 0; y < ny_; ++y)
        for (int z = 0; z < nz_; ++z) row(y, z, first, last - first);
}

// Half-way bounce-back at an end of the section, written into the halo: there a point of the last plane finds its own outgoing
// population in place of one from beyond the wall.
void Lattice::end_wall(int x, int way) {
    for (int i = 1; i < 19; ++i) {
        if (cx[i] != -way) continue;
        for (int y = 0; y < ny_; ++y)
            for (int z = 0; z < nz_; ++z)
                if (z >= cz[i] && z - cz[i] < nz_) now(i)[at(x - cx[i], y - cy[i], z - cz[i])] = now(back(i))[at(x, y, z)];
    }
}

// Pull and collide in one sweep, `count` points of a row from `first` on. At the bottom, the lid and the two banks a whole row
// bounces back at once: the row pulls its own opposite populations. The lid also pushes; 6 * weight * velocity along the population's
// way.
void Lattice::row(int y, int z, int first, int count) {
    const double *from[19];
    double *to[19];
    for (int i = 0; i < 19; ++i) {
        const int source_y = y - cy[i], source_z = z - cz[i];
        const int place = block_.y0 + source_y;
        const bool wall = place < 0 || place >= block_.ny || source_z < 0 || source_z >= nz_;
        from[i] = wall ? now(back(i)) + at(first, y, z) : now(i) + at(first - cx[i], source_y, source_z);
        to[i] = next(i) + at(first, y, z);
    }
    const bool lid = z == nz_ - 1;
    const double push_x = lid ? block_.lid_x / 6.0 : 0.0, push_y = lid ? block_.lid_y / 6.0 : 0.0;
    const double omega = omega_, keep = 1.0 - omega_;
#pragma omp simd
    for (int x = 0; x < count; ++x) {
        const double f0 = from[0][x];
        const double f1 = from[1][x], f2 = from[2][x], f3 = from[3][x], f4 = from[4][x], f5 = from[5][x], f6 = from[6][x];
        const double f7 = from[7][x], f8 = from[8][x], f9 = from[9][x], f10 = from[10][x];
        const double f11 = from[11][x], f12 = from[12][x] - push_x, f13 = from[13][x] + push_x, f14 = from[14][x];
        const double f15 = from[15][x], f16 = from[16][x] - push_y, f17 = from[17][x] + push_y, f18 = from[18][x];
        const double density = f0 + ((f1 + f2) + (f3 + f4) + (f5 + f6)) + ((f7 + f8) + (f9 + f10)) +
                               ((f11 + f12) + (f13 + f14)) + ((f15 + f16) + (f17 + f18));
        const double share = 1.0 / density;
        const double u = ((f1 - f2) + (f7 - f8) + (f9 - f10) + (f11 - f12) + (f13 - f14)) * share;
        const double v = ((f3 - f4) + (f7 - f8) - (f9 - f10) + (f15 - f16) + (f17 - f18)) * share;
        const double w = ((f5 - f6) + (f11 - f12) - (f13 - f14) + (f15 - f16) - (f17 - f18)) * share;
        const double rest = 1.0 - 1.5 * (u * u + v * v + w * w), mass = omega * density;
        // A pair of opposites has the same even part, and an odd one of either sign.
        const auto relax = [&](int i, double there, double opposite, double part, double speed) {
            const double even = part * (rest + 4.5 * speed * speed), odd = part * (3.0 * speed);
            to[i][x] = keep * there + (even + odd);
            to[i + 1][x] = keep * opposite + (even - odd);
        };
        const double axis = mass * weight(1), diagonal = mass * weight(7);
        to[0][x] = keep * f0 + mass * weight(0) * rest;
        relax(1, f1, f2, axis, u);
        relax(3, f3, f4, axis, v);
        relax(5, f5, f6, axis, w);
        relax(7, f7, f8, diagonal, u + v);
        relax(9, f9, f10, diagonal, u - v);
        relax(11, f11, f12, diagonal, u + w);
        relax(13, f13, f14, diagonal, u - w);
        relax(15, f15, f16, diagonal, v + w);
        relax(17, f17, f18, diagonal, v - w);
    }
}

std::array<std::vector<double>, 4> Lattice::flow() const {
    std::array<std::vector<double>, 4> flow;
    const std::size_t points = std::size_t(nx_) * std::size_t(ny_) * std::size_t(nz_);
    for (auto &values : flow) values.resize(points);
    const double speed = std::hypot(block_.lid_x, block_.lid_y), unit = speed > 0.0 ? 1.0 / speed : 1.0;
    std::size_t point = 0;
    for (int y = 0; y < ny_; ++y)
        for (int z = 0; z < nz_; ++z)
            for (int x = 0; x < nx_; ++x, ++point) {
                double density = 0, u = 0, v = 0, w = 0;
                for (int i = 0; i < 19; ++i) {
                    const double f = now(i)[at(x, y, z)];
                    density += f;
                    u += cx[i] * f;
                    v += cy[i] * f;
                    w += cz[i] * f;
                }
                flow[0][point] = density;
                flow[1][point] = u / density * unit;
                flow[2][point] = v / density * unit;
                flow[3][point] = w / density * unit;
            }
    return flow;
}

std::uint64_t Lattice::fingerprint() const {
    std::uint64_t sum = 0;
    for (int i = 0; i < 19; ++i)
        for (int y = 0; y < ny_; ++y)
            for (int z = 0; z < nz_; ++z) {
                const std::uint64_t row = (std::uint64_t(i) * block_.ny + block_.y0 + y) * block_.nz + z;
                for (int x = 0; x < nx_; ++x) {
                    std::uint64_t bits, place = row * block_.nx + block_.x0 + x;
                    std::memcpy(&bits, now(i) + at(x, y, z), sizeof bits);
                    // The position first, so that equal numbers at different positions differ; then the mixing of SplitMix64.
                    bits ^= place * 0x9e3779b97f4a7c15;
                    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
                    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
                    sum += bits ^ bits >> 31;
                }
            }
    return sum;
}
