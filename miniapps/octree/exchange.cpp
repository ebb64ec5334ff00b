// All of MPI that the solver needs: its names are written MPI_NAME(Isend), so that this file can be compiled for another library
// with the same calls under a prefix, such as -DMPI_NAME(name)=PREFIX_MPI_##name, and -DMPI_HEADER=<header>.
#ifndef MPI_HEADER
#define MPI_HEADER <mpi.h>
#endif
#include MPI_HEADER
#ifndef MPI_NAME
#define MPI_NAME(name) MPI_##name
#endif

#include "exchange.hpp"

struct Ranks::Calls {
    MPI_NAME(Comm) comm;
    std::vector<double> leaving;
    std::vector<MPI_NAME(Request)> requests;
};

Ranks::Ranks(const void *comm) : calls_(std::make_unique<Calls>()) {
    calls_->comm = comm ? *static_cast<const MPI_NAME(Comm) *>(comm) : MPI_NAME(COMM_WORLD);
    MPI_NAME(Comm_rank)(calls_->comm, &rank_);
    MPI_NAME(Comm_size)(calls_->comm, &size_);
}

Ranks::~Ranks() = default;

std::uint64_t Ranks::sum(std::uint64_t part) const {
    std::uint64_t sum = 0;
    MPI_NAME(Allreduce)(&part, &sum, 1, MPI_NAME(UINT64_T), MPI_NAME(SUM), calls_->comm);
    return sum;
}

void Ranks::exchange(const std::vector<Partner> &partners, const double *memory, double *arriving) {
    auto &[comm, leaving, requests] = *calls_;
    std::size_t all = 0, packed = 0;
    for (const Partner &partner : partners) all += partner.leaving.size();
    leaving.resize(all);
    requests.clear();
    for (const Partner &partner : partners) {
        if (partner.arriving == 0) continue;
        MPI_NAME(Irecv)(arriving, int(partner.arriving), MPI_NAME(DOUBLE), partner.rank, 0, comm, &requests.emplace_back());
        arriving += partner.arriving;
    }
    for (const Partner &partner : partners) {
        if (partner.leaving.empty()) continue;
        double *const begin = leaving.data() + packed;
        for (const std::size_t place : partner.leaving) leaving[packed++] = memory[place];
        MPI_NAME(Isend)(begin, int(partner.leaving.size()), MPI_NAME(DOUBLE), partner.rank, 0, comm, &requests.emplace_back());
    }
    MPI_NAME(Waitall)(int(requests.size()), requests.data(), MPI_NAME(STATUSES_IGNORE));
}

std::vector<double> Ranks::gather(const std::vector<double> &part, const std::vector<std::size_t> &sizes) {
    Partner first{0, {}, 0};
    for (std::size_t place = 0; place < part.size(); ++place) first.leaving.push_back(place);
    if (rank_ > 0) {
        exchange({first}, part.data(), nullptr);
        return {};
    }
    std::vector<Partner> others;
    std::vector<double> all = part;
    for (std::size_t rank = 1; rank < sizes.size(); ++rank) others.push_back({int(rank), {}, sizes[rank]});
    for (const Partner &other : others) all.resize(all.size() + other.arriving);
    exchange(others, nullptr, all.data() + part.size());
    return all;
}
