// The ring of parts: messages between a part's first rank and the first ranks of its two neighbours. There are two kinds: by MPI,
// where one program is all parts, and by paths of titin, where each part is a program.
#ifndef NBODY_RING_HPP
#define NBODY_RING_HPP

#include <cstdint>
#include <memory>
#include <mpi.h>
#include <vector>

#include "options.hpp"

using Bytes = std::vector<char>;

/// A neighbour in the ring. Two parts have one neighbour each, to the right.
enum Side { right = 0, left = 1 };

/// A message that is on its way.
class Arrival {
public:
    virtual ~Arrival() = default;
    /// Waits for the message. To be called once, and in the order in which the arrivals of a side were begun.
    virtual Bytes take() = 0;
};

/// What has passed between the parts, at this end.
struct Traffic {
    double seconds = 0; ///< in calls
    double waited = 0;  ///< of these, for messages
    std::int64_t sent = 0, received = 0; ///< bytes
};

/// Called by one thread. On each side, messages arrive in the order of the sends. `send`, `receive` and `cycle` do not wait.
class Ring {
public:
    Ring(int part, int parts, bool one_way) : part_(part), parts_(parts), one_way_(one_way) {}
    virtual ~Ring() = default;

    int part() const { return part_; }
    int parts() const { return parts_; }
    int sides() const { return parts_ < 3 ? parts_ - 1 : 2; }
    int neighbour(int side) const { return (part_ + (side == right ? 1 : parts_ - 1)) % parts_; }

    void send(int side, Bytes bytes);
    /// Begins to receive the next message of this side.
    std::unique_ptr<Arrival> receive(int side);
    /// The same, and passes the message on to the other side.
    std::unique_ptr<Arrival> cycle(int side);

    /// Begins to send a message to all other parts, and to receive theirs.
    std::vector<std::unique_ptr<Arrival>> begin_round(Bytes mine);
    /// Waits for the messages of the other parts, which come in any order.
    std::vector<Bytes> take(std::vector<std::unique_ptr<Arrival>> arrivals);

    /// Waits until all has been sent, and ends the connections.
    virtual void close() = 0;

    const Traffic &traffic() const { return traffic_; }

protected:
    using Shared = std::shared_ptr<const Bytes>;
    virtual void begin_send(int side, Shared bytes) = 0;
    virtual std::unique_ptr<Arrival> begin_receive(int side, bool pass_on) = 0;

private:
    void send_shared(int side, Shared bytes);
    std::unique_ptr<Arrival> begin(int side, bool pass_on);

    const int part_, parts_;
    const bool one_way_;
    Traffic traffic_;
};

/// The ranks of this part, and at the first of them the ring.
struct Team {
    int part;
    MPI_Comm ranks;
    std::unique_ptr<Ring> ring;
};

/// In an MPI program that is all parts, the team of this rank. In a program that is one part, all ranks; it waits for its
/// neighbours.
/// Throws BadOption at all ranks.
Team find_team(const Options &options);

#endif
