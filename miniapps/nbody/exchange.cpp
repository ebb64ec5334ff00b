#include "exchange.hpp"

#include <cstring>

#include "collect.hpp"

namespace {

// A message between neighbours: the number of particles in 8 bytes, the particles, and then the bodies.

Bytes packed(const Parcel &parcel) {
    const std::uint64_t count = parcel.particles.size();
    const std::size_t bodies = sizeof count + count * sizeof(Particle);
    Bytes bytes(bodies + parcel.bodies.size() * sizeof(Body));
    std::memcpy(bytes.data(), &count, sizeof count);
    if (count) std::memcpy(&bytes[sizeof count], parcel.particles.data(), count * sizeof(Particle));
    if (!parcel.bodies.empty()) std::memcpy(&bytes[bodies], parcel.bodies.data(), parcel.bodies.size() * sizeof(Body));
    return bytes;
}

void unpack(const Bytes &bytes, Parcel &parcel) {
    std::uint64_t count;
    std::memcpy(&count, bytes.data(), sizeof count);
    const Particle *particles = reinterpret_cast<const Particle *>(bytes.data() + sizeof count);
    const Body *bodies = reinterpret_cast<const Body *>(particles + count);
    parcel.particles.insert(parcel.particles.end(), particles, particles + count);
    parcel.bodies.insert(parcel.bodies.end(), bodies, reinterpret_cast<const Body *>(bytes.data() + bytes.size()));
}

} // namespace

Exchange::Exchange(int part, int parts, MPI_Comm ranks, Ring *ring, const NearForce &law)
    : part_(part), parts_(parts), ranks_(ranks), ring_(ring), law_(law) {
    MPI_Comm_rank(ranks, &rank_);
    MPI_Comm_size(ranks, &ranks_count_);
}

Exchange::Region Exchange::region(const Cuts &slabs, int slab, const Cuts &columns, int column) const {
    const Interval x = slabs.domain(slab), y = columns.domain(column);
    return {x, law_.needs(x), y, law_.needs(y)};
}

void Exchange::begin(const Cuts &slabs, const std::vector<Particle> &own) {
    const int sides = parts_ < 3 ? parts_ - 1 : 2;
    for (int side = 0; side < sides; side++) {
        const int neighbour = (part_ + (side == right ? 1 : parts_ - 1)) % parts_;
        const Interval slab = slabs.domain(neighbour), needs = law_.needs(slab);
        Parcel parcel;
        for (const Particle &particle : own) {
            if (slab.contains(particle.x[0])) parcel.particles.push_back(particle);
            else if (needs.contains(particle.x[0])) parcel.bodies.push_back(particle.body());
        }
        parcel.particles = gather(parcel.particles, ranks_, ranks_count_);
        parcel.bodies = gather(parcel.bodies, ranks_, ranks_count_);
        if (!ring_) continue;
        ring_->send(side, packed(parcel));
        arrivals_.push_back(ring_->receive(side));
    }
}

void Exchange::within(const Cuts &slabs, const Cuts &columns, std::vector<Particle> &own, std::vector<Body> &others) {
    std::vector<std::vector<Particle>> particles(ranks_count_);
    std::vector<std::vector<Body>> bodies(ranks_count_);
    for (int rank = 0; rank < ranks_count_; rank++) {
        const Region there = region(slabs, part_, columns, rank);
        if (rank == rank_) mine_ = there;
        for (const Particle &particle : own) {
            if (there.has(particle.x)) particles[rank].push_back(particle);
            else if (there.needs(particle.x)) bodies[rank].push_back(particle.body());
        }
    }
    own = all_to_all(particles, ranks_);
    others = all_to_all(bodies, ranks_);
}

bool Exchange::finish(const Interval &quiet, std::vector<Particle> &own, std::vector<Body> &others) {
    if (parts_ == 1) return true;
    Parcel parcel;
    for (auto &arrival : arrivals_) unpack(arrival->take(), parcel);
    arrivals_.clear();
    broadcast(parcel.particles, ranks_);
    broadcast(parcel.bodies, ranks_);
    bool is_quiet = true;
    for (const Particle &particle : parcel.particles) {
        is_quiet &= !quiet.contains(particle.x[0]);
        if (mine_.has(particle.x)) own.push_back(particle);
        else if (mine_.needs(particle.x)) others.push_back(particle.body());
    }
    for (const Body &body : parcel.bodies) {
        is_quiet &= !quiet.contains(body.x[0]);
        if (mine_.needs(body.x)) others.push_back(body);
    }
    return is_quiet;
}
