// The near forces: a tree after Barnes and Hut (1986), walked once for each group of neighbouring particles (Barnes 1990), with
// the short-range factor of the Gaussian split (Bagla 2002; Springel 2005, equation 21).
//
// The cells of the tree are those of an octree of the box. Which cells are opened, and in which order, depends on cells and on
// the particles in them, and not on which of them are this rank's. So a particle's force has the same bits whoever computes it.
#ifndef NBODY_TREE_HPP
#define NBODY_TREE_HPP

#include <array>
#include <vector>

#include "box.hpp"

using Vector = std::array<double, 3>;

/// The law of the near forces.
struct NearForce {
    NearForce(double split, double cutoff, double softening, double theta, double mesh_spacing, double strength);

    double cutoff, softening; ///< in boxes
    double theta;             ///< the opening angle
    double strength;          ///< G times the mass of a particle
    int group_level;          ///< the level of the largest cells that are one group of particles, or one source
    /// The far force of a unit mass over the distance r is a polynomial in 2 (r / cutoff)^2 - 1.
    static constexpr int degree = 14;
    std::array<double, degree + 1> far;

    /// The interval along an axis in which all particles must be known for the forces in this one.
    Interval needs(const Interval &interval) const;
};

/// The forces on the first `own` of these bodies, once for each: those that are done are left out.
class Tree {
public:
    Tree(const std::vector<Body> &bodies, std::size_t own, const NearForce &law);

    /// Computes the forces of those groups whose needs along the x axis are within `known`.
    /// Sets `acceleration`, `work` to the number of interactions, and `done`.
    void forces(const Interval &known, std::vector<Vector> &acceleration, std::vector<std::uint32_t> &work,
                std::vector<char> &done) const;

private:
    struct Node {
        Coordinate centre[3], mass_centre[3];
        std::uint32_t begin, end; ///< of its bodies
        std::uint32_t next;       ///< the node after this one and all below it
        int level;
        bool leaf;
    };
    struct Sources {
        std::vector<double> x, y, z, mass;
    };

    void build(std::uint32_t begin, std::uint32_t end, int level);
    void walk(const Node &group, Sources &sources) const;
    void apply(const Node &group, const Sources &sources, std::vector<Vector> &acceleration, std::vector<std::uint32_t> &work,
               std::vector<char> &done) const;

    const NearForce &law_;
    std::vector<std::uint64_t> keys_;
    std::vector<Coordinate> x_[3];
    std::vector<std::int64_t> own_; ///< the number of the own particle, or -1
    std::vector<Node> nodes_;
};

#endif
