#include "tube.hpp"

#include <algorithm>
#include <cmath>

namespace {

// The distance from the axis.
double off_axis(double y, double z) { return std::sqrt((y - 0.5) * (y - 0.5) + (z - 0.5) * (z - 0.5)); }

// The number of [low, low + edge] that is next to the middle.
double next_to_middle(double low, double edge) { return std::clamp(0.5, low, low + edge); }

} // namespace

Tube::Tube(double radius, double bulge, double length) : radius_(radius), bulge_(bulge), length_(length) {}

double Tube::radius(double x) const {
    const double s = (x - 0.5) / (0.5 * length_), rest = 1.0 - s * s;
    return rest > 0.0 ? radius_ + (bulge_ - radius_) * rest * rest : radius_;
}

double Tube::slope(double x) const {
    const double s = (x - 0.5) / (0.5 * length_), rest = 1.0 - s * s;
    return rest > 0.0 ? -(bulge_ - radius_) * 4.0 * s * rest / (0.5 * length_) : 0.0;
}

bool Tube::is_inside(double x, double y, double z) const { return off_axis(y, z) < radius(x); }

// The bulge is widest in the middle, so the point next to the axis and to the middle decides.
bool Tube::reaches(double x, double y, double z, double edge) const {
    return is_inside(next_to_middle(x, edge), next_to_middle(y, edge), next_to_middle(z, edge));
}

double Tube::wall(const std::array<double, 3> &inside, const std::array<double, 3> &outside) const {
    double low = 0.0, high = 1.0;
    for (int step = 0; step < 50; ++step) {
        const double t = 0.5 * (low + high);
        const auto at = [&](int dim) {
            const auto d = std::size_t(dim);
            return inside[d] + t * (outside[d] - inside[d]);
        };
        (is_inside(at(0), at(1), at(2)) ? low : high) = t;
    }
    return low;
}

double Tube::distance(double x, double y, double z) const {
    return (radius(x) - off_axis(y, z)) / std::sqrt(1.0 + slope(x) * slope(x));
}

std::array<double, 3> Tube::normal(double x, double y, double z) const {
    const double r = off_axis(y, z), along = slope(x), length = std::sqrt(1.0 + along * along);
    if (r == 0.0) return {0.0, 1.0, 0.0}; // on the axis every direction across is as good
    return {-along / length, (y - 0.5) / r / length, (z - 0.5) / r / length};
}
