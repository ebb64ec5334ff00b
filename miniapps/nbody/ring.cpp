#include "ring.hpp"

#include <algorithm>
#include <cstdio>
#include <list>
#include <string>
#include <titin/path.hpp>
#include <unistd.h>
#include <utility>

namespace {

/// Adds the time from its beginning to its end to a sum.
class Stopwatch {
public:
    explicit Stopwatch(double &sum) : sum_(sum), begin_(MPI_Wtime()) {}
    ~Stopwatch() { sum_ += MPI_Wtime() - begin_; }

private:
    double &sum_;
    const double begin_;
};

} // namespace

void Ring::send(int side, Bytes bytes) { send_shared(side, std::make_shared<const Bytes>(std::move(bytes))); }

void Ring::send_shared(int side, Shared bytes) {
    const Stopwatch stopwatch(traffic_.seconds);
    traffic_.sent += std::int64_t(bytes->size());
    begin_send(side, std::move(bytes));
}

std::unique_ptr<Arrival> Ring::receive(int side) { return begin(side, false); }

std::unique_ptr<Arrival> Ring::cycle(int side) { return begin(side, true); }

std::unique_ptr<Arrival> Ring::begin(int side, bool pass_on) {
    struct Timed : Arrival {
        Timed(std::unique_ptr<Arrival> inner, bool pass_on, Traffic &traffic)
            : inner(std::move(inner)), pass_on(pass_on), traffic(traffic) {}
        Bytes take() override {
            const Stopwatch seconds(traffic.seconds), waited(traffic.waited);
            Bytes bytes = inner->take();
            traffic.received += std::int64_t(bytes.size());
            if (pass_on) traffic.sent += std::int64_t(bytes.size());
            return bytes;
        }
        std::unique_ptr<Arrival> inner;
        const bool pass_on;
        Traffic &traffic;
    };
    const Stopwatch stopwatch(traffic_.seconds);
    return std::make_unique<Timed>(begin_receive(side, pass_on), pass_on, traffic_);
}

std::vector<std::unique_ptr<Arrival>> Ring::begin_round(Bytes mine) {
    std::vector<std::unique_ptr<Arrival>> arrivals;
    if (parts_ == 1) return arrivals;
    const auto shared = std::make_shared<const Bytes>(std::move(mine));
    // Each message goes so many hops to the right, and meets those that went to the left.
    const int hops[2] = {one_way_ ? parts_ - 1 : parts_ / 2, one_way_ ? 0 : parts_ - 1 - parts_ / 2};
    for (int side : {right, left})
        if (hops[side]) send_shared(side, shared);
    for (int way : {right, left}) {
        const int from = sides() == 1 ? right : 1 - way;
        for (int hop = 1; hop <= hops[way]; hop++) arrivals.push_back(hop < hops[way] ? cycle(from) : receive(from));
    }
    return arrivals;
}

std::vector<Bytes> Ring::take(std::vector<std::unique_ptr<Arrival>> arrivals) {
    std::vector<Bytes> messages;
    for (auto &arrival : arrivals) messages.push_back(arrival->take());
    return messages;
}

// ---- MPI --------------------------------------------------------------------------------------------------------------------

namespace {

class RingByMpi : public Ring {
public:
    RingByMpi(MPI_Comm leaders, int part, const Options &options)
        : Ring(part, options.parts, options.one_way), leaders_(leaders) {}

    void close() override {
        for (auto &[request, bytes] : sends_) MPI_Wait(&request, MPI_STATUS_IGNORE);
        sends_.clear();
    }

protected:
    void begin_send(int side, Shared bytes) override {
        sends_.remove_if([](auto &send) {
            int done;
            MPI_Test(&send.first, &done, MPI_STATUS_IGNORE);
            return done != 0;
        });
        sends_.emplace_back(MPI_REQUEST_NULL, bytes);
        MPI_Isend(bytes->data(), int(bytes->size()), MPI_BYTE, neighbour(side), 0, leaders_, &sends_.back().first);
    }

    std::unique_ptr<Arrival> begin_receive(int side, bool pass_on) override {
        struct ByMpi : Arrival {
            ByMpi(RingByMpi &ring, int side, bool pass_on) : ring(ring), side(side), pass_on(pass_on) {}
            Bytes take() override {
                MPI_Message message;
                MPI_Status status;
                int length;
                MPI_Mprobe(ring.neighbour(side), 0, ring.leaders_, &message, &status);
                MPI_Get_count(&status, MPI_BYTE, &length);
                Bytes bytes(length);
                MPI_Mrecv(bytes.data(), length, MPI_BYTE, &message, MPI_STATUS_IGNORE);
                if (pass_on) ring.begin_send(1 - side, std::make_shared<const Bytes>(bytes));
                return bytes;
            }
            RingByMpi &ring;
            const int side;
            const bool pass_on;
        };
        return std::make_unique<ByMpi>(*this, side, pass_on);
    }

private:
    MPI_Comm leaders_;
    std::list<std::pair<MPI_Request, Shared>> sends_;
};

// ---- Paths ------------------------------------------------------------------------------------------------------------------

class RingByPaths : public Ring {
public:
    explicit RingByPaths(const Options &options) : Ring(options.part, options.parts, options.one_way) {
        titin::PathOptions settings;
        // The other site may start its part much later, from a queue say.
        settings.patience(std::chrono::hours(24));
        if (!options.key.empty()) settings.key_file(options.key);
        if (options.streams) settings.streams(options.streams);
        // All listen before they open, so the ring closes whoever is first. Of two parts each has one path, `right`.
        std::unique_ptr<titin::PathListener> listener;
        if (!options.quiet && isatty(STDERR_FILENO)) {
            if (!options.listen.empty()) std::fprintf(stderr, "part %d listens at %s\n", part(), options.listen.c_str());
            if (!options.open.empty())
                std::fprintf(stderr, "part %d opens its path to part %d at %s\n", part(), neighbour(right), options.open.c_str());
        }
        if (!options.listen.empty()) listener = std::make_unique<titin::PathListener>(options.listen, settings);
        if (!options.open.empty())
            paths_[right] = std::make_unique<titin::Path>(options.open, "part " + std::to_string(part()), settings);
        if (listener) {
            auto &path = paths_[parts() == 2 ? right : left];
            path = std::make_unique<titin::Path>(listener->accept());
        }
        meet(description(options));
    }

    void close() override {
        for (auto &send : sends_) send.second.wait();
        sends_.clear();
        for (auto &path : paths_)
            if (path) path->close();
    }

protected:
    void begin_send(int side, Shared bytes) override {
        sends_.remove_if([](auto &send) { return send.second.test(); });
        sends_.emplace_back(bytes, paths_[side]->isend_bytes(bytes->data(), std::int64_t(bytes->size())));
    }

    std::unique_ptr<Arrival> begin_receive(int side, bool pass_on) override {
        struct ByPath : Arrival {
            explicit ByPath(titin::PathRequest request) : request(std::move(request)) {}
            Bytes take() override {
                request.wait();
                const auto message = request.message();
                const auto bytes = message.array<std::uint8_t>();
                return Bytes(bytes.begin(), bytes.end());
            }
            titin::PathRequest request;
        };
        titin::Path &from = *paths_[side];
        return std::make_unique<ByPath>(pass_on ? from.icycle(*paths_[1 - side]) : from.ireceive());
    }

private:
    /// Each two neighbours tell each other which part they are, and all settings.
    void meet(const std::string &mine) {
        for (int side = 0; side < sides(); side++) {
            const std::string said = std::to_string(part()) + '\n' + mine;
            send(side, Bytes(said.begin(), said.end()));
        }
        std::vector<std::string> heard;
        for (int side = 0; side < sides(); side++) {
            const Bytes bytes = receive(side)->take();
            heard.emplace_back(bytes.begin(), bytes.end());
        }
        // A part that finds a difference ends, and the others must have heard its settings by then.
        for (auto &path : paths_)
            if (path) path->flush();
        for (int side = 0; side < sides(); side++) {
            const std::size_t line = heard[side].find('\n');
            const std::string found = heard[side].substr(0, line), expected = std::to_string(neighbour(side));
            compare(mine, heard[side].substr(line + 1), "part " + found);
            if (found != expected)
                throw BadOption("the path to part " + expected + " has led to part " + found +
                                ": part I opens its path to the address where part I + 1 listens, the last part to part 0's");
        }
    }

    std::unique_ptr<titin::Path> paths_[2];
    /// A request ends before its bytes do.
    std::list<std::pair<Shared, titin::PathRequest>> sends_;
};

} // namespace

Team find_team(const Options &options) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> ranks = options.ranks;
    if (ranks.empty()) ranks.assign(options.parts, options.part >= 0 ? size : std::max(1, size / options.parts));
    const int most = *std::max_element(ranks.begin(), ranks.end());
    if (most > options.mesh / 2)
        throw BadOption("a part has " + std::to_string(most) + " ranks, and may have " + std::to_string(options.mesh / 2) +
                        ", half of --mesh: take fewer, or a larger --mesh");
    if (options.part >= 0) {
        Team team{options.part, MPI_COMM_WORLD, nullptr};
        std::string error;
        if (rank == 0) {
            try {
                team.ring = std::make_unique<RingByPaths>(options);
            } catch (const std::exception &caught) {
                error = caught.what();
            }
        }
        int failed = !error.empty();
        MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (failed) throw BadOption(error);
        return team;
    }
    int sum = 0, part = -1;
    for (int i = 0; i < options.parts; i++) {
        if (rank >= sum && rank < sum + ranks[i]) part = i;
        sum += ranks[i];
    }
    if (sum != size)
        throw BadOption("there are " + std::to_string(size) + " ranks for --parts " + std::to_string(options.parts) +
                        ", which take " + std::to_string(sum) + ": give that number to mpirun -n, or other numbers to --ranks");
    Team team{part, MPI_COMM_NULL, nullptr};
    MPI_Comm_split(MPI_COMM_WORLD, part, rank, &team.ranks);
    int within;
    MPI_Comm_rank(team.ranks, &within);
    MPI_Comm leaders;
    MPI_Comm_split(MPI_COMM_WORLD, within == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
    if (within == 0) team.ring = std::make_unique<RingByMpi>(leaders, part, options);
    return team;
}
