// LB and POST_DATA in one MPI job, coupled by hand: what type_a.ymmsl does without titin, to compare.
//
//     mpirun -np 5 by_hand 2 level_m=4 level_n=6 ... probes=0.05,0.5,0.5/0.5,0.5,0.5
//
// The first two ranks are LB, the others POST_DATA. Rank 0 prints the results on one line.

#include "case.hpp"
#include "exchange.hpp"
#include "lattice.hpp"
#include "statistics.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <mpi.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

Case case_of(int count, char **words) {
    std::map<std::string, std::string> settings;
    for (int i = 0; i < count; ++i) {
        const std::string word = words[i];
        settings[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    const auto text = [&](const char *name) { return settings.at(name); };
    return read_case([&](const char *name) { return std::stod(text(name)); }, [&](const char *name) { return std::stoll(text(name)); },
                     [&](const char *name) {
                         std::vector<std::array<double, 3>> points;
                         std::istringstream all(text(name));
                         for (std::string point; std::getline(all, point, '/');) {
                             std::array<double, 3> numbers{};
                             char comma;
                             std::istringstream(point) >> numbers[0] >> comma >> numbers[1] >> comma >> numbers[2];
                             points.push_back(numbers);
                         }
                         return points;
                     });
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// One end of the coupling: the ranks of the other program, and the cells that go to each or come from it.
class Coupling {
public:
    // All ranks of the job call this. A rank of POST_DATA asks the ranks of LB for the cells that it wants.
    Coupling(int lb_ranks, const Mesh &mesh, const Cut &lb, const std::vector<Cell> &wanted) {
        int size, rank;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        std::vector<std::vector<Cell>> asked(static_cast<std::size_t>(size));
        if (rank >= lb_ranks)
            for (std::size_t place = 0; place < wanted.size(); ++place) {
                const int owner = lb.owner(wanted[place]);
                asked[std::size_t(owner)].push_back(wanted[place]);
                peers_[owner].places.push_back(place);
            }
        std::vector<int> ours, theirs(static_cast<std::size_t>(size));
        for (const auto &cells : asked) ours.push_back(int(cells.size()));
        MPI_Alltoall(ours.data(), 1, MPI_INT, theirs.data(), 1, MPI_INT, MPI_COMM_WORLD);
        std::vector<std::vector<Cell>> given;
        for (const int count : theirs) given.emplace_back(static_cast<std::size_t>(count));
        std::vector<MPI_Request> requests;
        for (int other = 0; other < size; ++other) {
            auto &out = asked[std::size_t(other)], &in = given[std::size_t(other)];
            if (!in.empty())
                MPI_Irecv(in.data(), int(in.size()), MPI_INT64_T, other, 1, MPI_COMM_WORLD, &requests.emplace_back());
            if (!out.empty())
                MPI_Isend(out.data(), int(out.size()), MPI_INT64_T, other, 1, MPI_COMM_WORLD, &requests.emplace_back());
        }
        MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (int other = 0; other < size; ++other)
            for (const Cell cell : given[std::size_t(other)]) peers_[other].places.push_back(std::size_t(mesh.find(cell)));
    }

    // Sends are waited for before the next ones, so that LB goes on while they are under way.
    void send(const Flow &flow) {
        finish();
        for (auto &[rank, peer] : peers_) {
            peer.packed.clear();
            for (const auto &values : flow)
                for (const std::size_t place : peer.places) peer.packed.push_back(values[place]);
            MPI_Isend(peer.packed.data(), int(peer.packed.size()), MPI_DOUBLE, rank, 2, MPI_COMM_WORLD, &requests_.emplace_back());
        }
    }
    void receive(Flow &flow) {
        for (auto &[rank, peer] : peers_) {
            peer.packed.resize(4 * peer.places.size());
            MPI_Irecv(peer.packed.data(), int(peer.packed.size()), MPI_DOUBLE, rank, 2, MPI_COMM_WORLD, &requests_.emplace_back());
        }
        finish();
        for (auto &[rank, peer] : peers_) {
            const double *from = peer.packed.data();
            for (auto &values : flow)
                for (const std::size_t place : peer.places) values[place] = *from++;
        }
    }
    void finish() {
        MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }

private:
    struct Peer {
        std::vector<std::size_t> places;
        std::vector<double> packed;
    };
    std::map<int, Peer> peers_;
    std::vector<MPI_Request> requests_;
};

void run(int lb_ranks, const Case &here) {
    int size, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (lb_ranks < 1 || lb_ranks >= size)
        throw std::runtime_error("of " + std::to_string(size) + " ranks " + std::to_string(lb_ranks) +
                                 " were to be LB: give 1 to all but one");
    const bool is_lb = rank < lb_ranks;
    MPI_Comm own;
    MPI_Comm_split(MPI_COMM_WORLD, is_lb, rank, &own);
    Ranks ranks(&own);
    const Cut lb = here.cut(lb_ranks);
    const Mesh mesh(here.tube, is_lb ? lb : here.cut(ranks.size()), ranks.rank());
    Statistics statistics(mesh, here.viscosity, here.probes);
    Coupling coupling(lb_ranks, mesh, lb, statistics.cells());
    Flow flow = statistics.room();

    const double begin = now();
    std::uint64_t state = 0, found = 0;
    if (is_lb) {
        Lattice lattice(mesh, here.viscosity);
        for (int step = 1; step <= here.steps; ++step) {
            lattice.step(ranks, here.force_at(step));
            if (!here.has_sample(step)) continue;
            lattice.flow(flow);
            coupling.send(flow);
        }
        coupling.finish();
        state = ranks.sum(lattice.fingerprint());
    } else {
        for (int sample = 0; sample < here.samples(); ++sample) {
            coupling.receive(flow);
            statistics.sample(flow);
        }
        found = ranks.sum(statistics.fingerprint());
    }
    const double step = (now() - begin) / here.steps;
    if (rank == lb_ranks) MPI_Send(&found, 1, MPI_UINT64_T, 0, 3, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&found, 1, MPI_UINT64_T, lb_ranks, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::printf("{\"begin\": %.6f, \"step\": %.9f, \"state\": \"%016llx\", \"fingerprint\": \"%016llx\"}\n", begin, step,
                    static_cast<unsigned long long>(state), static_cast<unsigned long long>(found));
    }
    MPI_Comm_free(&own);
}

} // namespace

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    if (argc < 2) throw std::runtime_error("give the number of ranks of LB, and settings as name=value");
    run(std::stoi(argv[1]), case_of(argc - 2, argv + 2));
    MPI_Finalize();
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
}
