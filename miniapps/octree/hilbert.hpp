// The position of a cell along the Hilbert curve through a cube of cells, after Hamilton, Compact Hilbert Indices, Dalhousie
// University CS-2006-07: the curve through each octant is that through the whole, mirrored and turned so that it begins where the
// one through the octant before has ended.
#pragma once

#include <cstdint>

namespace hilbert {

// Three bits, turned to the left.
constexpr unsigned turn(unsigned bits, unsigned by) { return (bits << by % 3 | bits >> (3 - by % 3)) & 7u; }
constexpr unsigned gray(unsigned i) { return i ^ i >> 1; }
constexpr unsigned gray_inverse(unsigned code) { return code ^ code >> 1 ^ code >> 2; }
constexpr unsigned trailing_ones(unsigned i) { return i & 1u ? 1 + trailing_ones(i >> 1) : 0; }

// Where the curve enters octant i of its order, and the direction in which it leaves.
constexpr unsigned entry(unsigned i) { return i == 0 ? 0 : gray((i - 1) / 2 * 2); }
constexpr unsigned direction(unsigned i) { return i == 0 ? 0 : trailing_ones(i % 2 ? i : i - 1) % 3; }

// The position of cell (x, y, z) of 2^level cells along each edge.
constexpr std::uint64_t position(int level, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    std::uint64_t found = 0;
    unsigned start = 0, way = 0;
    for (int bit = level - 1; bit >= 0; --bit) {
        const unsigned octant = (z >> bit & 1u) << 2 | (y >> bit & 1u) << 1 | (x >> bit & 1u);
        const unsigned i = gray_inverse(turn(octant ^ start, 3 - (way + 1) % 3));
        start ^= turn(entry(i), way + 1);
        way = (way + direction(i) + 1) % 3;
        found = found << 3 | i;
    }
    return found;
}

} // namespace hilbert
