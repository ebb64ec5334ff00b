#include "mesh.hpp"

#include "directions.hpp"
#include "hilbert.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace {

// Calls `make` for the eight children of a cell, z slowest: depth first, that is the z-order.
template <class Make>
void children(std::uint32_t x, std::uint32_t y, std::uint32_t z, const Make &make) {
    for (std::uint32_t i = 0; i < 8; ++i) make(2 * x + (i & 1), 2 * y + (i >> 1 & 1), 2 * z + (i >> 2));
}

bool reaches(const Tube &tube, int level, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    const double edge = std::ldexp(1.0, -level);
    return tube.reaches(x * edge, y * edge, z * edge, edge);
}

} // namespace

Cut::Cut(const Tube &tube, int level_m, int level_n, int parts) : level_m_(level_m), level_n_(level_n) {
    if (level_m < 0 || level_m > level_n || level_n > 10)
        throw std::runtime_error("the settings `level_m` and `level_n` are " + std::to_string(level_m) + " and " +
                                 std::to_string(level_n) + ": level_m may be 0 to level_n, and level_n at most 10");
    refine(tube, 0, 0, 0, 0);
    std::sort(places_.begin(), places_.end(), [](const Place &a, const Place &b) { return a.position < b.position; });
    const std::size_t count = places_.size();
    if (count < std::size_t(parts))
        throw std::runtime_error("level " + std::to_string(level_m) + " has " + std::to_string(count) + " cells, too few for " +
                                 std::to_string(parts) + " ranks: take fewer, or a higher `level_m`");
    for (int part = 0; part <= parts; ++part) begins_.push_back(count * std::size_t(part) / std::size_t(parts));
}

void Cut::refine(const Tube &tube, int level, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    if (!reaches(tube, level, x, y, z)) return;
    if (level == level_m_) return places_.push_back({hilbert::position(level, x, y, z), {x, y, z}});
    children(x, y, z, [&](auto... child) { refine(tube, level + 1, child...); });
}

std::vector<std::array<std::uint32_t, 3>> Cut::cells(int part) const {
    std::vector<std::array<std::uint32_t, 3>> found;
    for (std::size_t i = begins_[std::size_t(part)]; i < begins_[std::size_t(part) + 1]; ++i) found.push_back(places_[i].corner);
    return found;
}

int Cut::owner(Cell cell) const {
    const int down = level_n_ - level_m_;
    const auto along = [&](int dim) { return std::uint32_t(cell >> dim * level_n_ & ((Cell(1) << level_n_) - 1)) >> down; };
    const std::uint64_t position = hilbert::position(level_m_, along(0), along(1), along(2));
    const auto place = std::lower_bound(places_.begin(), places_.end(), position,
                                        [](const Place &place, std::uint64_t value) { return place.position < value; });
    const auto begin = std::upper_bound(begins_.begin(), begins_.end(), std::size_t(place - places_.begin()));
    return int(begin - begins_.begin()) - 1;
}

Mesh::Mesh(const Tube &tube, const Cut &cut, int part) : tube_(tube), cut_(cut), part_(part) {
    for (const auto &[x, y, z] : cut_.cells(part)) refine(cut_.level_m(), x, y, z);
    order_.resize(cells_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](int a, int b) { return cells_[std::size_t(a)] < cells_[std::size_t(b)]; });
}

void Mesh::refine(int level, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    if (level < cut_.level_n()) {
        if (reaches(tube_, level, x, y, z)) children(x, y, z, [&](auto... child) { refine(level + 1, child...); });
        return;
    }
    const Cell cell = number(x, y, z);
    if (cell != wall) cells_.push_back(cell);
}

int Mesh::find(Cell cell) const {
    const auto found = std::lower_bound(order_.begin(), order_.end(), cell,
                                        [&](int place, Cell value) { return cells_[std::size_t(place)] < value; });
    return found != order_.end() && cells_[std::size_t(*found)] == cell ? *found : -1;
}

Cell Mesh::number(std::int64_t x, std::int64_t y, std::int64_t z) const {
    const std::int64_t n = edge();
    if (y < 0 || y >= n || z < 0 || z >= n) return wall;
    x = (x + n) % n; // the ends meet
    const double size = 1.0 / double(n);
    return tube_.is_inside((double(x) + 0.5) * size, (double(y) + 0.5) * size, (double(z) + 0.5) * size) ? (z * n + y) * n + x : wall;
}

Cell Mesh::next(Cell cell, int i) const {
    const std::int64_t n = edge();
    return number(cell % n + cx[i], cell / n % n + cy[i], cell / n / n + cz[i]);
}

std::array<double, 3> Mesh::centre(Cell cell) const { return beside(cell, 0); }

std::array<double, 3> Mesh::beside(Cell cell, int i) const {
    const std::int64_t n = edge();
    const double size = 1.0 / double(n);
    return {(double(cell % n + cx[i]) + 0.5) * size, (double(cell / n % n + cy[i]) + 0.5) * size,
            (double(cell / n / n + cz[i]) + 0.5) * size};
}

Cell Mesh::at(const std::array<double, 3> &point) const {
    for (const double along : point)
        if (!(along >= 0.0 && along < 1.0)) return wall;
    const auto index = [&](int dim) { return std::int64_t(point[std::size_t(dim)] * edge()); };
    return number(index(0), index(1), index(2));
}

bool Mesh::is_at_wall(Cell cell) const {
    for (int i = 1; i < directions; ++i)
        if (next(cell, i) == wall) return true;
    return false;
}

int Mesh::inwards(Cell cell) const {
    const auto here = centre(cell);
    const double from = tube_.distance(here[0], here[1], here[2]);
    int best = 0;
    double farthest = from;
    for (int i = 1; i < directions; ++i) {
        if (next(cell, i) == wall) continue;
        const auto [x, y, z] = beside(cell, i);
        const double distance = tube_.distance(x, y, z);
        if (distance > farthest) {
            farthest = distance;
            best = i;
        }
    }
    return best;
}
