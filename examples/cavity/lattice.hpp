// A block of a lid-driven cavity, solved by the lattice Boltzmann method (D2Q9, BGK).
//
// The cavity is n by n cells. A block owns the cells [x0, x1) by [y0, y1) of the cavity, and a halo one cell wide.
// A side of the block is a wall, the moving lid, or a seam to another block. Walls and lid bounce back
// half-way between the last cell and the halo, so the wall stands exactly on the cavity's edge.
//
// Why a divided cavity equals the whole one to the bit: a step computes each cell from nine numbers, by the
// same expressions in every block, and numbers that cross a seam are copied, never recomputed.
// Compile without -ffast-math and with -ffp-contract=off, so that the compiler keeps to these expressions.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

// The eight neighbours of a block, or of a cell, in the order of the lattice's directions 1 to 8.
inline constexpr std::array<const char *, 8> compass = {
    "east", "north", "west", "south", "north_east", "north_west", "south_west", "south_east"};

// The opposite direction: west for east, south_west for north_east.
inline int opposite(int side) { return side < 4 ? (side + 2) % 4 : 4 + (side - 2) % 4; }

struct Block {
    int n;              // cells along a side of the whole cavity
    int x0, x1, y0, y1; // the cells of this block
    double lid;         // speed of the lid, in cells per step
    double reynolds;    // lid * n / viscosity
};

class Lattice {
public:
    explicit Lattice(const Block &block);

    // The populations that leave this block at a side, and those that arrive there: of the cells along the side, the
    // populations that move across it. Both blocks of a seam have the same count of numbers.
    std::vector<double> leaving(int side) const;
    void arrive(int side, const double *populations);
    std::size_t crossing(int side) const;

    // One step. The halo must hold the populations from the neighbours; the walls need nothing from outside.
    void step();

    // Five planes, each ny by nx: x, y (cell centres, 0 to 1), u, v (in units of the lid's speed), density.
    std::vector<double> fields() const;

    int nx() const { return nx_; }
    int ny() const { return ny_; }

private:
    std::size_t at(int x, int y) const { return std::size_t(y + 1) * std::size_t(nx_ + 2) + std::size_t(x + 1); }
    void bounce();

    Block block_;
    int nx_, ny_;
    double omega_;
    std::array<std::vector<double>, 9> now_, next_; // populations, with halo: (ny + 2) rows of (nx + 2)
};
