#include "statistics.hpp"

#include "directions.hpp"
#include "fingerprint.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

Statistics::Statistics(const Mesh &mesh, double viscosity, const std::vector<std::array<double, 3>> &probes)
    : mesh_(mesh), viscosity_(viscosity), cells_(mesh.cells()) {
    const auto own = std::size_t(mesh.size());
    for (auto *values : {&mean_, &squares_})
        for (auto &one : *values) one.assign(own, 0.0);
    find_partners();
    find_shears();
    find_probes(probes);
}

void Statistics::find_probes(const std::vector<std::array<double, 3>> &probes) {
    std::map<int, std::vector<std::int64_t>> numbers; // by rank
    for (std::size_t number = 0; number < probes.size(); ++number) {
        const Cell cell = mesh_.at(probes[number]);
        const auto &[x, y, z] = probes[number];
        if (cell == wall)
            throw std::runtime_error("probe " + std::to_string(number) + " at (" + std::to_string(x) + ", " + std::to_string(y) +
                                     ", " + std::to_string(z) + ") is in no cell of the tube: change the setting `probes`");
        numbers[mesh_.cut().owner(cell)].push_back(std::int64_t(number));
        if (mesh_.find(cell) >= 0) places_.push_back(mesh_.find(cell));
    }
    for (const auto &[rank, there] : numbers)
        for (const std::int64_t number : there) {
            probes_.push_back(number);
            owners_.push_back(rank);
        }
    series_.resize(places_.size());
}

// In cells.
double Statistics::distance(Cell cell) const {
    const auto [x, y, z] = mesh_.centre(cell);
    return mesh_.edge() * mesh_.tube().distance(x, y, z);
}

// The cell itself and the next one inwards. Close to the wall a small error of the velocity makes a large one of the slope: there
// the next two.
std::array<Cell, 2> Statistics::above(Cell cell) const {
    const int inwards = mesh_.is_at_wall(cell) ? mesh_.inwards(cell) : 0;
    if (inwards == 0) return {wall, wall};
    const Cell next = mesh_.next(cell, inwards), last = mesh_.next(next, inwards);
    if (distance(cell) < 0.5 && last != wall) return {next, last};
    return {cell, next};
}

// The cells that this rank needs of another or gives to another. Both list them by number.
void Statistics::find_partners() {
    std::map<int, std::pair<std::set<Cell>, std::set<Cell>>> shared; // leaving and arriving, by rank
    for (const Cell here : mesh_.cells()) {
        for (const Cell there : above(here))
            if (there != wall && mesh_.find(there) < 0) shared[mesh_.cut().owner(there)].second.insert(there);
        for (int i = 1; i < directions; ++i) {
            Cell there = here;
            for (int step = 0; step < 2 && there != wall; ++step) {
                there = mesh_.next(there, i);
                if (there == wall || mesh_.find(there) >= 0) continue;
                const auto [near, far] = above(there);
                if (near == here || far == here) shared[mesh_.cut().owner(there)].first.insert(here);
            }
        }
    }
    for (const auto &[rank, both] : shared) {
        const auto &[leaving, arriving] = both;
        Partner partner{rank, {}, arriving.size()};
        for (const Cell cell : leaving) partner.leaving.push_back(std::size_t(mesh_.find(cell)));
        cells_.insert(cells_.end(), arriving.begin(), arriving.end());
        partners_.push_back(partner);
    }
}

// The slope of the velocity at the wall is that of the parabola through 0 at the wall and both cells.
void Statistics::find_shears() {
    std::map<Cell, int> places;
    for (std::size_t place = 0; place < cells_.size(); ++place) places[cells_[place]] = int(place);
    for (int cell = 0; cell < mesh_.size(); ++cell) {
        const Cell here = mesh_.cells()[std::size_t(cell)];
        const auto [one, other] = above(here);
        if (one == wall) continue;
        const double near = distance(one), far = distance(other);
        if (!(near > 0.0 && far > near)) continue; // only where a tube is as narrow as a cell
        const auto [x, y, z] = mesh_.centre(here);
        shears_.push_back({cell, places.at(one), places.at(other), far / near / (far - near), -near / far / (far - near),
                           mesh_.tube().normal(x, y, z), {}, 0.0});
    }
}

Flow Statistics::room() const {
    Flow room;
    for (auto &values : room) values.resize(cells_.size());
    return room;
}

void Statistics::sample(const Flow &flow) {
    ++samples_;
    const double count = double(samples_);
    // Welford's method.
    for (std::size_t k = 0; k < 4; ++k)
        for (std::size_t cell = 0; cell < mean_[k].size(); ++cell) {
            const double away = flow[k][cell] - mean_[k][cell];
            mean_[k][cell] += away / count;
            squares_[k][cell] += away * (flow[k][cell] - mean_[k][cell]);
        }
    for (Shear &shear : shears_) {
        const auto tangential = [&](int cell) {
            std::array<double, 3> velocity;
            double across = 0.0;
            for (std::size_t k = 0; k < 3; ++k) across += (velocity[k] = flow[k + 1][std::size_t(cell)]) * shear.normal[k];
            for (std::size_t k = 0; k < 3; ++k) velocity[k] -= across * shear.normal[k];
            return velocity;
        };
        const auto near = tangential(shear.near), far = tangential(shear.far);
        double square = 0.0;
        for (std::size_t k = 0; k < 3; ++k) {
            const double stress = viscosity_ * (shear.share_near * near[k] + shear.share_far * far[k]);
            shear.sum[k] += stress;
            square += stress * stress;
        }
        shear.sizes += std::sqrt(square);
    }
    for (std::size_t probe = 0; probe < places_.size(); ++probe)
        for (const auto &values : flow) series_[probe].push_back(values[std::size_t(places_[probe])]);
}

std::vector<std::vector<double>> Statistics::found() const {
    std::vector<std::vector<double>> found(results, std::vector<double>(mean_[0].size(), 0.0));
    const double count = samples_ > 0 ? double(samples_) : 1.0;
    for (std::size_t k = 0; k < 4; ++k) {
        found[k] = mean_[k];
        for (std::size_t cell = 0; cell < mean_[k].size(); ++cell) found[4 + k][cell] = std::sqrt(squares_[k][cell] / count);
    }
    for (const Shear &shear : shears_) {
        const auto cell = std::size_t(shear.cell);
        const double sum = std::sqrt(shear.sum[0] * shear.sum[0] + shear.sum[1] * shear.sum[1] + shear.sum[2] * shear.sum[2]);
        found[8][cell] = shear.sizes / count;
        found[9][cell] = shear.sizes > 0.0 ? 0.5 * (1.0 - sum / shear.sizes) : 0.0;
    }
    return found;
}

std::vector<double> Statistics::series() const {
    std::vector<double> all;
    for (const auto &one : series_) all.insert(all.end(), one.begin(), one.end());
    return all;
}

std::vector<std::size_t> Statistics::series_sizes() const {
    std::vector<std::size_t> sizes(std::size_t(mesh_.cut().parts()));
    for (const int rank : owners_) sizes[std::size_t(rank)] += std::size_t(samples_) * probed;
    return sizes;
}

std::uint64_t Statistics::fingerprint() const {
    std::uint64_t sum = 0, result = 0;
    for (const auto &values : found()) {
        for (std::size_t cell = 0; cell < values.size(); ++cell)
            sum += ::fingerprint(std::uint64_t(mesh_.cells()[cell]) * results + result, values[cell]);
        ++result;
    }
    return sum;
}
