// Where particles go after they have moved: to the rank that has their place now, and to all ranks whose forces need them.
//
// Another part gets one message: the particles that have gone there, and the places of those near its slab.
#ifndef NBODY_EXCHANGE_HPP
#define NBODY_EXCHANGE_HPP

#include <mpi.h>
#include <vector>

#include "box.hpp"
#include "domain.hpp"
#include "ring.hpp"
#include "tree.hpp"

/// Particles that go to a rank or part, and others that it must know.
struct Parcel {
    std::vector<Particle> particles;
    std::vector<Body> bodies;
};

class Exchange {
public:
    /// `ring` is null but at the first rank of the part.
    Exchange(int part, int parts, MPI_Comm ranks, Ring *ring, const NearForce &law);

    /// Sends the neighbours what they need of these particles, which have moved, and begins to receive what they send.
    void begin(const Cuts &slabs, const std::vector<Particle> &own);
    /// The ranks of the part exchange particles. Afterwards `own` are those that were the part's and are this rank's now, and
    /// `others` are the bodies of the part that it must know beside them.
    void within(const Cuts &slabs, const Cuts &columns, std::vector<Particle> &own, std::vector<Body> &others);
    /// Waits for the neighbours, and adds what came. Returns false if something came for a place inside of `quiet`, an interval
    /// along x.
    bool finish(const Interval &quiet, std::vector<Particle> &own, std::vector<Body> &others);

private:
    /// What a rank has, and what its forces need.
    struct Region {
        Interval slab, slab_needs, column, column_needs;
        bool has(const Coordinate *x) const { return slab.contains(x[0]) && column.contains(x[1]); }
        bool needs(const Coordinate *x) const { return slab_needs.contains(x[0]) && column_needs.contains(x[1]); }
    };
    Region region(const Cuts &slabs, int slab, const Cuts &columns, int column) const;

    const int part_, parts_;
    MPI_Comm ranks_;
    int rank_, ranks_count_;
    Ring *ring_;
    const NearForce &law_;
    Region mine_;
    std::vector<std::unique_ptr<Arrival>> arrivals_;
};

#endif
