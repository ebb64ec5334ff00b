// The ranks of the solver, and all that they tell each other. Only exchange.cpp calls MPI, by the few calls that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// A rank that needs numbers of this rank, and has numbers that this rank needs.
struct Partner {
    int rank;
    // Where the numbers for that rank are in memory, in an order that both know.
    std::vector<std::size_t> leaving;
    // How many numbers come from there.
    std::size_t arriving;
};

class Ranks {
public:
    // The ranks of a communicator: MPI_Comm *, behind a pointer that needs no header. By default those of MPI_COMM_WORLD.
    explicit Ranks(const void *comm = nullptr);
    ~Ranks();

    int rank() const { return rank_; }
    int size() const { return size_; }
    // The sum over all ranks, modulo 2^64, so that their order does not matter.
    std::uint64_t sum(std::uint64_t part) const;
    // Gives each partner what it needs of `memory`; what the partners give lies one after the other from `arriving` on.
    void exchange(const std::vector<Partner> &partners, const double *memory, double *arriving);

    // On rank 0 the numbers of all ranks, one rank after the other; every rank knows how many each has.
    std::vector<double> gather(const std::vector<double> &part, const std::vector<std::size_t> &sizes);

private:
    struct Calls;
    std::unique_ptr<Calls> calls_;
    int rank_, size_;
};
