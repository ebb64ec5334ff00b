#include "seam.hpp"

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

std::string port(const char *way, Side end) { return std::string(way) + (end == west ? "left" : "right"); }

// Fields: each rank at the end sends its part without a copy, and receives into its halo. So nothing is gathered or updated.
class Fields : public Seam {
public:
    Fields(titin::Instance &instance, Side end, const Ranks &ranks, const Lattice &lattice, int ny)
        : Fields(instance, end, spread(end, ranks, lattice, ny)) {
        const std::int64_t planes = ranks.is_at(end);
        for (int i = 0; i < 5; ++i)
            for (titin::Field *field : {&out_, &in_})
                field->layout(i, {planes, lattice.ny(), lattice.nz()},
                              {lattice.stride_y(), lattice.stride_y(), lattice.stride_z()});
    }
    void gather(Lattice &) override {}
    void send(Lattice &lattice, double timestamp, double next) override {
        out_.send(timestamp, next, lattice.leaving(end_));
    }
    void receive(Lattice &lattice) override { in_.receive(lattice.arriving(end_)); }
    void update(Lattice &) override {}

private:
    Fields(titin::Instance &instance, Side end, const titin::Decomposition &spread)
        : end_(end), out_(instance.field<double, double, double, double, double>(port("to_", end), spread)),
          in_(instance.field<double, double, double, double, double>(port("from_", end), spread)) {}

    // A plane across the canal, one point long. Only the ranks at the end own parts of it.
    static titin::Decomposition spread(Side end, const Ranks &ranks, const Lattice &lattice, int ny) {
        std::vector<std::int64_t> along(std::size_t(ranks.along() + 1), end == west);
        along.front() = 0;
        along.back() = 1;
        return titin::Decomposition({1, ny, lattice.nz()}).grid({ranks.along(), ranks.across(), 1}).bounds(0, along);
    }

    Side end_;
    titin::Field out_, in_;
};

// Ordinary messages, as in the paper: MPI gathers the plane at rank 0, which sends it. All ranks get the message that
// rank 0 receives, and each takes its part.
class Gathered : public Seam {
public:
    Gathered(titin::Instance &instance, Side end, const Ranks &ranks, const Lattice &lattice, int ny)
        : instance_(instance), end_(end), ranks_(ranks), out_(instance.port(port("to_", end))),
          in_(instance.port(port("from_", end))), ny_(ny), at_end_(ranks.is_at(end)) {
        const int column = 5 * lattice.nz();
        for (int rank = 0; rank < ranks.count(); ++rank) {
            const bool there = rank / ranks.across() == (end == west ? 0 : ranks.along() - 1);
            const int across = rank % ranks.across();
            places_.push_back(column * begin(across, ranks.across(), ny));
            counts_.push_back(there ? column * begin(across + 1, ranks.across(), ny) - places_.back() : 0);
        }
        part_.resize(std::size_t(counts_[std::size_t(ranks.rank())]));
        plane_.resize(std::size_t(column * ny));
    }
    void gather(Lattice &lattice) override {
        if (ranks_.count() == 1) return pack(lattice, lattice.leaving(end_), plane_.data());
        if (at_end_) pack(lattice, lattice.leaving(end_), part_.data());
        MPI_Gatherv(part_.data(), int(part_.size()), MPI_DOUBLE, plane_.data(), counts_.data(), places_.data(), MPI_DOUBLE, 0,
                    ranks_.comm());
    }
    void send(Lattice &lattice, double timestamp, double next) override {
        instance_.send(out_, titin::Span(plane_.data(), {ny_, 5, lattice.nz()}), timestamp, next);
    }
    void receive(Lattice &) override { got_.emplace(instance_.receive(in_)); }
    void update(Lattice &lattice) override {
        if (at_end_)
            unpack(lattice, lattice.arriving(end_),
                   got_->array<double>({ny_, 5, lattice.nz()}).data() + places_[std::size_t(ranks_.rank())]);
        got_.reset();
    }

private:
    titin::Instance &instance_;
    Side end_;
    const Ranks &ranks_;
    titin::Port out_, in_;
    int ny_;
    bool at_end_;
    std::vector<int> counts_, places_;
    std::vector<double> part_, plane_;
    std::optional<titin::Message> got_;
};

} // namespace

std::unique_ptr<Seam> seam(titin::Instance &instance, Side end, const std::string &exchange, const Ranks &ranks,
                           const Lattice &lattice, int ny) {
    if (exchange == "fields") return std::make_unique<Fields>(instance, end, ranks, lattice, ny);
    if (exchange == "gathered") return std::make_unique<Gathered>(instance, end, ranks, lattice, ny);
    throw std::runtime_error("the setting `exchange` is \"" + exchange + "\": set it to fields or to gathered");
}
