// A block of a canal section: water in a closed box under a lid that moves, as wind over a canal, solved by the lattice
// Boltzmann method in three dimensions (D3Q19, BGK).
//
// The section is nx by ny by nz points, along it, across it and upwards; a block owns the points [x0, x1) by [y0, y1) of it,
// from the bottom to the lid, and a halo one point wide along and across. Walls and lid bounce back half-way beyond the
// outermost points.
//
// Why a divided section equals the whole one to the bit: a step computes each point from nineteen numbers, by the same
// expressions in every block, and populations that cross a cut are copied, never recomputed. Compile without -ffast-math
// and with -ffp-contract=off, so that the compiler keeps to those expressions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

struct Block {
    int nx, ny, nz;     // points of the whole section
    int x0, x1, y0, y1; // points of this block
    double lid_x, lid_y; // velocity of the lid, in points per step
    double viscosity;    // in points squared per step
};

// The sides of a block that may be cuts: along the canal and across it.
enum Side { west, east, south, north };

class Lattice {
public:
    explicit Lattice(const Block &block);

    // A step, in two parts: every point pulls populations from its neighbours, and collides them. The halo beyond cuts must hold
    // the points of the neighbouring blocks; walls need nothing from outside. `begin` computes the outermost points of these sides,
    // `finish` all others. What leaves such a side is there after `begin`, so it can be under way while `finish` computes.
    void begin(bool west_side, bool east_side);
    void finish();

    // The addresses of the five populations that cross a side, at its outermost points and in the halo of the block beyond.
    // West and east each has (ny, nz) numbers with these strides, from the first point on. South and north each is a run of
    // numbers, with the halo at both ends: populations from west and east go on to the blocks across corners.
    using Populations = std::array<double *, 5>;
    Populations leaving(Side side);
    Populations arriving(Side side);
    std::ptrdiff_t stride_y() const { return std::ptrdiff_t(nz_) * pitch_; }
    std::ptrdiff_t stride_z() const { return pitch_; }
    int run() const { return nz_ * pitch_; }

    // Density and the three velocities (in units of the lid's speed, if it moves), each (ny, nz, nx).
    std::array<std::vector<double>, 4> flow() const;
    // A number that depends on every bit and position of the state. The numbers of all blocks add up to that of the section.
    std::uint64_t fingerprint() const;

    int nx() const { return nx_; }
    int ny() const { return ny_; }
    int nz() const { return nz_; }

private:
    std::ptrdiff_t at(int x, int y, int z) const { return (std::ptrdiff_t(y + 1) * nz_ + z) * pitch_ + x + 1; }
    double *now(int i) { return memory_.data() + (now_ + i) * size_; }
    const double *now(int i) const { return memory_.data() + (now_ + i) * size_; }
    double *next(int i) { return memory_.data() + (19 - now_ + i) * size_; }
    Populations populations(int half, int way_x, int way_y, std::ptrdiff_t first);
    void end_wall(int x, int way);
    void rows(int first, int last);
    void row(int y, int z, int first, int count);

    Block block_;
    int nx_, ny_, nz_;
    int pitch_;           // from row to row: nx, and the halo
    std::ptrdiff_t size_; // from population to population
    double omega_;
    int now_ = 0;     // 0 or 19: the half of the memory with the state
    int leaving_ = 0; // the half with the populations that leave: between `begin` and `finish` the other one
    int first_ = 0, last_ = 0; // between `begin` and `finish`: the points along the canal that are left to compute
    std::vector<double> memory_;
};
