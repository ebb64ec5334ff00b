// The far forces: particle mesh (Hockney and Eastwood 1981) with cloud-in-cell assignment, the Gaussian factor of the split in
// Fourier space, and differences of the potential over four points (Springel 2005, section 3.1).
//
// The density is counted in integers, so that its sum over ranks and parts does not depend on their order.
#ifndef NBODY_MESH_HPP
#define NBODY_MESH_HPP

#include <array>
#include <cstdint>
#include <vector>

#include "box.hpp"
#include "fourier.hpp"
#include "ring.hpp"
#include "tree.hpp"

class Mesh {
public:
    /// `split` is r_s in boxes; `strength` is 4 pi G times the mass of a particle.
    Mesh(int n, MPI_Comm part, double split, double strength);

    /// Sets the density to that of the particles of all ranks of the part. Only its first rank then has it.
    void deposit(const std::vector<Particle> &particles);
    /// For the first rank: the planes that have mass, for the other parts, and the sum with theirs.
    void pack(Bytes &message) const;
    void add(const char *packed);
    /// The potential of the density at the first rank, for all ranks.
    void solve();
    /// Adds the far force.
    void forces(const std::vector<Particle> &particles, std::vector<Vector> &acceleration) const;

private:
    std::size_t plane() const { return std::size_t(n_) * n_; }

    const int n_;
    const double split_, strength_;
    Fourier fourier_;
    std::vector<std::int64_t> density_;
    std::vector<double> potential_;
};

#endif
