// The geometry: a tube with a bulge half-way, along x through the middle of a cube with edges of length 1. The ends meet: what
// leaves at x = 1 comes in at x = 0.
//
// Only additions, products, quotients and square roots are used, which are rounded alike by all processors; so the same cells
// are inside everywhere.
#pragma once

#include <array>

class Tube {
public:
    // The radius of the tube and of its bulge at the widest place, and the length of the bulge.
    Tube(double radius, double bulge, double length);

    double radius(double x) const;
    bool is_inside(double x, double y, double z) const;
    // Whether a cube with this lower corner has points of the tube.
    bool reaches(double x, double y, double z, double edge) const;
    // How far it is to the wall from a point inside to a point outside, as a part of their distance.
    double wall(const std::array<double, 3> &inside, const std::array<double, 3> &outside) const;
    // The distance of a point from the wall, along the normal there.
    double distance(double x, double y, double z) const;
    // The normal of the wall next to a point, outwards.
    std::array<double, 3> normal(double x, double y, double z) const;

private:
    double slope(double x) const;

    double radius_, bulge_, length_;
};
