// A hierarchical Cartesian mesh in the tube, made as in section 3.2 of the paper: the cube is cut into eight again and again, and
// cells outside are left out. The cells of level m are put in the order of a Hilbert curve, and cut into one part for each rank,
// of as many cells. Each rank goes on with its part alone, to level n, depth first.
//
// A cell of level n is in the mesh if its centre is inside the tube. So the cells do not depend on level m or the number of
// parts, and every rank can tell of any cell whether it is in the mesh, and which rank has it, without a message.
#pragma once

#include "tube.hpp"

#include <array>
#include <cstdint>
#include <vector>

// A cell of level n by its number in the cube, x fastest: the number of the element in fields of shape (2^n, 2^n, 2^n).
using Cell = std::int64_t;
constexpr Cell wall = -1;

// The cells of level m, and which rank has which.
class Cut {
public:
    Cut(const Tube &tube, int level_m, int level_n, int parts);

    int level_m() const { return level_m_; }
    int level_n() const { return level_n_; }
    int parts() const { return int(begins_.size()) - 1; }
    // The corners of the cells of level m that a part has, in the order of the curve, counted in cells of level m.
    std::vector<std::array<std::uint32_t, 3>> cells(int part) const;
    // The part that has a cell of level n.
    int owner(Cell cell) const;

private:
    struct Place {
        std::uint64_t position;
        std::array<std::uint32_t, 3> corner;
    };
    void refine(const Tube &tube, int level, std::uint32_t x, std::uint32_t y, std::uint32_t z);

    int level_m_, level_n_;
    std::vector<Place> places_;
    std::vector<std::size_t> begins_;
};

class Mesh {
public:
    // The part of this number, of all parts of the cut.
    Mesh(const Tube &tube, const Cut &cut, int part);

    const Tube &tube() const { return tube_; }
    const Cut &cut() const { return cut_; }
    int part() const { return part_; }
    int size() const { return int(cells_.size()); }
    // Cells along an edge of the cube.
    int edge() const { return 1 << cut_.level_n(); }
    // The cells of this part, in the order of the curve.
    const std::vector<Cell> &cells() const { return cells_; }
    // The place of a cell in cells(); -1 if another part has it.
    int find(Cell cell) const;
    // The cell next to a cell in a direction of D3Q19, or `wall`.
    Cell next(Cell cell, int direction) const;
    // The centre of a cell, and that of the next cell in a direction, which may be outside.
    std::array<double, 3> centre(Cell cell) const;
    std::array<double, 3> beside(Cell cell, int direction) const;
    // The cell that has this point; `wall` if none has.
    Cell at(const std::array<double, 3> &point) const;
    // Whether the wall is next to a cell, in a direction of D3Q19.
    bool is_at_wall(Cell cell) const;
    // The direction to the neighbour of a cell at the wall that lies farthest from the wall; 0 if it has no neighbour.
    int inwards(Cell cell) const;

private:
    Cell number(std::int64_t x, std::int64_t y, std::int64_t z) const;
    void refine(int level, std::uint32_t x, std::uint32_t y, std::uint32_t z);

    Tube tube_;
    Cut cut_;
    int part_;
    std::vector<Cell> cells_;
    std::vector<int> order_; // places in cells(), by the number of the cell
};
