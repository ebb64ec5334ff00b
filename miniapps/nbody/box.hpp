// The periodic box, its particles, and intervals of it.
//
// A coordinate is an integer of 64 bits, and the box is 2^64 of its units long. Sums and differences wrap around as the box
// does, and are exact: the signed difference of two coordinates is the distance to the nearest image.
#ifndef NBODY_BOX_HPP
#define NBODY_BOX_HPP

#include <cstdint>

using Coordinate = std::uint64_t;
using Wide = unsigned __int128;

constexpr double unit = 0x1p-64; ///< of a coordinate, in lengths of the box

/// From b to the nearest image of a, in lengths of the box.
inline double difference(Coordinate a, Coordinate b) { return double(std::int64_t(a - b)) * unit; }

/// A length of less than half a box, in lengths of the box, in the units of coordinates.
inline Coordinate length_of(double length) { return Coordinate(std::int64_t(length * 0x1p64)); }

/// The edge of a cell of the octree, whose root is the box at level 0. The levels are from 1 to 63 here.
inline Coordinate cell_size(int level) { return Coordinate(1) << (64 - level); }

/// What others need of a particle for their forces.
struct Body {
    Coordinate x[3];
    std::uint64_t id;
};

/// A particle with its momentum a^2 dx/dt, in box lengths and Hubble times. All particles have the same mass.
struct Particle {
    Coordinate x[3];
    std::uint64_t id;
    double p[3];

    Body body() const { return {{x[0], x[1], x[2]}, id}; }
};

/// A part of the periodic axis: [begin, begin + length), or all of it.
struct Interval {
    Coordinate begin = 0;
    Coordinate length = 0;
    bool all = true;

    bool contains(Coordinate x) const { return all || x - begin < length; }
    /// Whether all of another interval, which is not longer than the box, is in this one.
    bool contains(const Interval &other) const {
        return all || (!other.all && other.begin - begin <= length && other.length <= length - (other.begin - begin));
    }
};

/// The cells of a level of the octree that this interval touches.
Interval aligned(const Interval &interval, int level);
/// The interval with so much more at both ends; less if `width` is negative.
Interval widened(const Interval &interval, double width);

#endif
