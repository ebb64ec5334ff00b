#include "lattice.hpp"

#include "directions.hpp"
#include "fingerprint.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace {

// Cells that are computed together: their populations are collected first, and so the collision needs no indices.
constexpr int block = 64;

} // namespace

Lattice::Lattice(const Mesh &mesh, double viscosity)
    : mesh_(mesh), cells_(mesh.size()), omega_(1.0 / (3.0 * viscosity + 0.5)) {
    if (!(viscosity > 0.0)) throw std::runtime_error("the setting `viscosity` is to be above 0");
    find_sources();
    find_links();
    std::size_t arriving = 0;
    for (const Partner &partner : partners_) arriving += partner.arriving;
    now_.resize(std::size_t(directions * cells_) + arriving);
    for (int i = 0; i < directions; ++i) std::fill_n(now_.begin() + std::ptrdiff_t(i) * cells_, cells_, weight(i));
    next_ = now_;
}

// Both ends of a cut list the populations that cross it by cell and direction; so they agree without a message.
void Lattice::find_sources() {
    struct Crossing {
        Cell from;
        int direction, cell; // the cell of this part: where the population leaves or arrives
        bool operator<(const Crossing &other) const {
            return std::pair(from, direction) < std::pair(other.from, other.direction);
        }
    };
    std::map<int, std::pair<std::vector<Crossing>, std::vector<Crossing>>> crossings; // leaving and arriving, by rank
    sources_.resize(std::size_t(directions * cells_));
    for (int cell = 0; cell < cells_; ++cell) {
        const Cell here = mesh_.cells()[std::size_t(cell)];
        for (int i = 0; i < directions; ++i) {
            int &source = sources_[std::size_t(i * cells_ + cell)];
            source = opposite(i) * cells_ + cell; // at the wall
            const Cell from = mesh_.next(here, opposite(i)), to = mesh_.next(here, i);
            if (from != wall) {
                const int place = mesh_.find(from);
                if (place >= 0) source = i * cells_ + place;
                else crossings[mesh_.cut().owner(from)].second.push_back({from, i, cell});
            }
            if (to != wall && mesh_.find(to) < 0) crossings[mesh_.cut().owner(to)].first.push_back({here, i, cell});
        }
    }
    int place = directions * cells_;
    for (auto &[rank, both] : crossings) {
        auto &[leaving, arriving] = both;
        std::sort(leaving.begin(), leaving.end());
        std::sort(arriving.begin(), arriving.end());
        Partner partner{rank, {}, arriving.size()};
        for (const Crossing &crossing : leaving) partner.leaving.push_back(std::size_t(crossing.direction * cells_ + crossing.cell));
        for (const Crossing &crossing : arriving) sources_[std::size_t(crossing.direction * cells_ + crossing.cell)] = place++;
        partners_.push_back(std::move(partner));
    }
}

// With the wall a part q of the way to the cell that is missing, what comes back is interpolated between what left this cell and, for
// q below 1/2, what the cell behind gives, else what came back before. A cell between two walls has no cell behind: there q is 1/2.
void Lattice::find_links() {
    for (int cell = 0; cell < cells_; ++cell) {
        const Cell here = mesh_.cells()[std::size_t(cell)];
        for (int i = 1; i < directions; ++i) { // comes from the wall
            const int towards = opposite(i);
            if (mesh_.next(here, towards) != wall || mesh_.next(here, i) == wall) continue;
            const double q = mesh_.tube().wall(mesh_.centre(here), mesh_.beside(here, towards));
            if (q < 0.5) links_.push_back({cell, i, 2.0 * q, 1.0 - 2.0 * q, sources_[std::size_t(towards * cells_ + cell)]});
            else links_.push_back({cell, i, 1.0 / (2.0 * q), 1.0 - 1.0 / (2.0 * q), i * cells_ + cell});
        }
    }
}

void Lattice::step(Ranks &ranks, double force) {
    ranks.exchange(partners_, now_.data(), now_.data() + directions * cells_);
    auto link = links_.begin();
    alignas(64) double pulled[directions][block];
    for (int first = 0; first < cells_; first += block) {
        const int count = std::min(block, cells_ - first);
        for (int i = 0; i < directions; ++i) {
            const int *const source = sources_.data() + i * cells_ + first;
            for (int k = 0; k < count; ++k) pulled[i][k] = now_[std::size_t(source[k])];
        }
        for (; link != links_.end() && link->cell < first + count; ++link) {
            const double left = now_[std::size_t(opposite(link->direction) * cells_ + link->cell)];
            pulled[link->direction][link->cell - first] = link->first * left + link->second * now_[std::size_t(link->source)];
        }
        double *to[directions];
        for (int i = 0; i < directions; ++i) to[i] = next_.data() + i * cells_ + first;
        const double omega = omega_, keep = 1.0 - omega_, pushed = 1.0 - 0.5 * omega_;
#pragma omp simd
        for (int k = 0; k < count; ++k) {
            double density = 0.0, u = 0.0, v = 0.0, w = 0.0;
#pragma GCC unroll 19
            for (int i = 0; i < directions; ++i) {
                const double f = pulled[i][k];
                density += f;
                if (cx[i]) u += cx[i] * f;
                if (cy[i]) v += cy[i] * f;
                if (cz[i]) w += cz[i] * f;
            }
            const double share = 1.0 / density;
            u = u * share + 0.5 * force;
            v *= share;
            w *= share;
            const double rest = 1.0 - 1.5 * (u * u + v * v + w * w);
#pragma GCC unroll 19
            for (int i = 0; i < directions; ++i) {
                const double speed = cx[i] * u + cy[i] * v + cz[i] * w;
                const double balance = weight(i) * density * (rest + 3.0 * speed + 4.5 * speed * speed);
                const double push = weight(i) * density * force * (3.0 * (cx[i] - u) + 9.0 * speed * cx[i]);
                to[i][k] = keep * pulled[i][k] + omega * balance + pushed * push;
            }
        }
    }
    std::swap(now_, next_);
    force_ = force;
}

// Collisions have added the force to the momentum; half of it belongs to the next step.
void Lattice::flow(Flow &flow) const {
    for (int cell = 0; cell < cells_; ++cell) {
        double density = 0.0, u = 0.0, v = 0.0, w = 0.0;
        for (int i = 0; i < directions; ++i) {
            const double f = now_[std::size_t(i * cells_ + cell)];
            density += f;
            u += cx[i] * f;
            v += cy[i] * f;
            w += cz[i] * f;
        }
        const auto at = std::size_t(cell);
        flow[0][at] = density;
        flow[1][at] = u / density - 0.5 * force_;
        flow[2][at] = v / density;
        flow[3][at] = w / density;
    }
}

std::uint64_t Lattice::fingerprint() const {
    std::uint64_t sum = 0;
    for (int cell = 0; cell < cells_; ++cell)
        for (int i = 0; i < directions; ++i)
            sum += ::fingerprint(std::uint64_t(mesh_.cells()[std::size_t(cell)]) * directions + std::uint64_t(i),
                                 now_[std::size_t(i * cells_ + cell)]);
    return sum;
}
