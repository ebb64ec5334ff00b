#include "tree.hpp"

#include <algorithm>
#include <cmath>

namespace {

constexpr int key_levels = 21;        // of the octree, three bits each
constexpr int leaf_bodies = 8;        // a cell of so many bodies is not divided further
constexpr int group_bodies = 64;      // a cell of so many bodies is one group
constexpr int lanes = 8;              // particles whose forces are computed at once
constexpr double pi = 3.14159265358979323846;

/// The far force of a unit mass at the distance 2 r_s sqrt(q), divided by the distance, in units of (2 r_s)^-3:
/// (erf(u) - 2 u exp(-u^2) / sqrt(pi)) / u^3 with q = u^2, which is an entire function of q. Its series in q has the terms
/// 4 / sqrt(pi) (-q)^n / (n! (2 n + 3)).
double far_force(double q) {
    double sum = 0, power = 1;
    for (int n = 0; n < 200; n++) {
        sum += power / (2 * n + 3);
        power *= -q / (n + 1);
    }
    return 4 / std::sqrt(pi) * sum;
}

/// The bits of the number, with two zeros between each and the next.
std::uint64_t spread(std::uint64_t bits) {
    bits = (bits | bits << 32) & 0x001f00000000ffff;
    bits = (bits | bits << 16) & 0x001f0000ff0000ff;
    bits = (bits | bits << 8) & 0x100f00f00f00f00f;
    bits = (bits | bits << 4) & 0x10c30c30c30c30c3;
    return (bits | bits << 2) & 0x1249249249249249;
}

/// The position along Morton's curve.
std::uint64_t key_of(const Coordinate *x) {
    return spread(x[0] >> (64 - key_levels)) << 2 | spread(x[1] >> (64 - key_levels)) << 1 | spread(x[2] >> (64 - key_levels));
}

/// The distance between two coordinates, beyond a length.
double gap(Coordinate a, Coordinate b, double length) { return std::max(0.0, std::abs(difference(a, b)) - length); }

} // namespace

NearForce::NearForce(double split, double cutoff, double softening, double theta, double mesh_spacing, double strength)
    : cutoff(cutoff), softening(softening), theta(theta), strength(strength) {
    // Groups as large as four cells of the mesh, but no more than lets the nearest image of a source be that of the whole group.
    for (group_level = 1; std::ldexp(1.0, -group_level) > std::min(4.0 * mesh_spacing, (0.5 - cutoff) / 2); group_level++) {}
    // Chebyshev's interpolation, and then the same polynomial in powers.
    constexpr int points = degree + 1;
    std::array<double, points> value, now{}, before{}, sum{};
    for (int i = 0; i < points; i++) {
        const double t = std::cos(pi * (i + 0.5) / points);
        value[i] = far_force((t + 1) / 2 * std::pow(cutoff / (2 * split), 2)) / std::pow(2 * split, 3);
    }
    now[0] = 1; // the powers in the Chebyshev polynomial of degree k
    for (int k = 0; k < points; k++) {
        double weight = 0;
        for (int i = 0; i < points; i++) weight += value[i] * std::cos(pi * k * (i + 0.5) / points);
        weight *= (k ? 2.0 : 1.0) / points;
        for (int i = 0; i < points; i++) sum[i] += weight * now[i];
        std::array<double, points> after{};
        for (int i = 0; i < points; i++) after[i] = (i ? (k ? 2 : 1) * now[i - 1] : 0) - before[i];
        before = k ? now : std::array<double, points>{1};
        now = after;
    }
    far = sum;
}

Interval NearForce::needs(const Interval &interval) const {
    return aligned(widened(aligned(interval, group_level), cutoff), group_level);
}

Tree::Tree(const std::vector<Body> &bodies, std::size_t own, const NearForce &law) : law_(law) {
    // The order of the bodies in a cell does not depend on who has sent them.
    struct Entry {
        std::uint64_t key, id;
        std::size_t place;
        bool operator<(const Entry &other) const { return key != other.key ? key < other.key : id < other.id; }
    };
    std::vector<Entry> order(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); i++) order[i] = {key_of(bodies[i].x), bodies[i].id, i};
    std::sort(order.begin(), order.end());
    for (const Entry &entry : order) {
        keys_.push_back(entry.key);
        own_.push_back(entry.place < own ? std::int64_t(entry.place) : -1);
        for (int d = 0; d < 3; d++) x_[d].push_back(bodies[entry.place].x[d]);
    }
    if (!bodies.empty()) build(0, std::uint32_t(bodies.size()), 0);
}

void Tree::build(std::uint32_t begin, std::uint32_t end, int level) {
    const std::size_t place = nodes_.size();
    Node node{{}, {}, begin, end, 0, level, level == key_levels || (level >= law_.group_level && end - begin <= leaf_bodies)};
    for (int d = 0; d < 3; d++) {
        const Coordinate half = Coordinate(1) << (63 - level), corner = level ? x_[d][begin] & -cell_size(level) : 0;
        node.centre[d] = corner + half;
        // Sums of integers have no order.
        Wide sum = 0;
        if (level >= law_.group_level)
            for (std::uint32_t i = begin; i < end; i++) sum += x_[d][i] - corner;
        node.mass_centre[d] = corner + Coordinate(sum / (end - begin));
    }
    nodes_.push_back(node);
    if (!node.leaf) {
        const int shift = 3 * (key_levels - level - 1);
        for (std::uint32_t from = begin; from < end;) {
            const std::uint64_t last = keys_[from] | ((std::uint64_t(1) << shift) - 1);
            const auto to = std::upper_bound(keys_.begin() + from, keys_.begin() + end, last) - keys_.begin();
            build(from, std::uint32_t(to), level + 1);
            from = std::uint32_t(to);
        }
    }
    nodes_[place].next = std::uint32_t(nodes_.size());
}

void Tree::forces(const Interval &known, std::vector<Vector> &acceleration, std::vector<std::uint32_t> &work,
                  std::vector<char> &done) const {
    Sources sources;
    bool is_known = false;
    for (std::size_t i = 0; i < nodes_.size();) {
        const Node &node = nodes_[i];
        if (node.level <= law_.group_level) {
            if (node.level < law_.group_level) {
                i++;
                continue;
            }
            const Interval cell{node.centre[0] - cell_size(node.level) / 2, cell_size(node.level), false};
            is_known = known.contains(law_.needs(cell));
        }
        const bool waits = std::any_of(own_.begin() + node.begin, own_.begin() + node.end,
                                       [&](std::int64_t number) { return number >= 0 && !done[number]; });
        if (is_known && waits && !node.leaf && node.end - node.begin > group_bodies) {
            i++;
            continue;
        }
        if (is_known && waits) {
            walk(node, sources);
            apply(node, sources, acceleration, work, done);
        }
        i = node.next;
    }
}

/// Collects what acts on a group, with positions from the centre of its cell.
void Tree::walk(const Node &group, Sources &sources) const {
    const double half = std::ldexp(0.5, -group.level);
    const double reach = law_.cutoff * law_.cutoff, angle = law_.theta * law_.theta;
    sources.x.clear(), sources.y.clear(), sources.z.clear(), sources.mass.clear();
    const auto add = [&](Coordinate x, Coordinate y, Coordinate z, double mass) {
        sources.x.push_back(difference(x, group.centre[0]));
        sources.y.push_back(difference(y, group.centre[1]));
        sources.z.push_back(difference(z, group.centre[2]));
        sources.mass.push_back(mass);
    };
    for (std::size_t i = 0; i < nodes_.size();) {
        const Node &node = nodes_[i];
        const double size = std::ldexp(1.0, -node.level);
        double between = 0, to_centre = 0;
        for (int d = 0; d < 3; d++) {
            const double near = gap(node.centre[d], group.centre[d], half + size / 2);
            const double centre = gap(node.centre[d], group.centre[d], half);
            between += near * near;
            to_centre += centre * centre;
        }
        if (between >= reach) {
            i = node.next;
        } else if (node.level >= law_.group_level && node.end - node.begin > 1 && size * size < angle * to_centre) {
            add(node.mass_centre[0], node.mass_centre[1], node.mass_centre[2], node.end - node.begin);
            i = node.next;
        } else if (node.leaf) {
            for (std::uint32_t b = node.begin; b < node.end; b++) add(x_[0][b], x_[1][b], x_[2][b], 1);
            i = node.next;
        } else {
            i++;
        }
    }
}

void Tree::apply(const Node &group, const Sources &sources, std::vector<Vector> &acceleration, std::vector<std::uint32_t> &work,
                 std::vector<char> &done) const {
    std::vector<std::uint32_t> targets;
    for (std::uint32_t b = group.begin; b < group.end; b++)
        if (own_[b] >= 0) targets.push_back(b);
    const double reach = law_.cutoff * law_.cutoff, scale = 2 / reach, soft = law_.softening * law_.softening;
    const std::size_t count = sources.x.size();
    for (std::size_t first = 0; first < targets.size(); first += lanes) {
        double x[lanes] = {}, y[lanes] = {}, z[lanes] = {}, fx[lanes] = {}, fy[lanes] = {}, fz[lanes] = {};
        const int filled = int(std::min<std::size_t>(lanes, targets.size() - first));
        for (int l = 0; l < filled; l++) {
            const std::uint32_t b = targets[first + l];
            x[l] = difference(x_[0][b], group.centre[0]);
            y[l] = difference(x_[1][b], group.centre[1]);
            z[l] = difference(x_[2][b], group.centre[2]);
        }
        // Each lane sums in the order of the sources.
        for (std::size_t s = 0; s < count; s++) {
            const double sx = sources.x[s], sy = sources.y[s], sz = sources.z[s], mass = sources.mass[s];
#pragma omp simd
            for (int l = 0; l < lanes; l++) {
                const double dx = sx - x[l], dy = sy - y[l], dz = sz - z[l];
                const double r2 = dx * dx + dy * dy + dz * dz, t = r2 * scale - 1, softened = r2 + soft;
                double far = law_.far[NearForce::degree];
                for (int k = NearForce::degree - 1; k >= 0; k--) far = far * t + law_.far[k];
                const double force = mass * (1 / (softened * std::sqrt(softened)) - far);
                const double near = r2 < reach ? force : 0;
                fx[l] += near * dx;
                fy[l] += near * dy;
                fz[l] += near * dz;
            }
        }
        for (int l = 0; l < filled; l++) {
            const std::int64_t own = own_[targets[first + l]];
            if (done[own]) continue;
            acceleration[own] = {law_.strength * fx[l], law_.strength * fy[l], law_.strength * fz[l]};
            work[own] = std::uint32_t(count);
            done[own] = 1;
        }
    }
}
