// The expansion of the box, as an Einstein-de Sitter universe or not at all, and the factors of the leap-frog's kicks and drifts
// (Quinn et al. 1997).
#ifndef NBODY_CLOCK_HPP
#define NBODY_CLOCK_HPP

#include <cmath>

#include "options.hpp"

/// The scale factor grows by the same factor in each step. Steps count from 0, and have halves.
class Clock {
public:
    explicit Clock(const Options &options) : options_(options) {}
    double a(double step) const {
        if (!options_.expands()) return 1;
        return options_.from * std::pow(options_.to / options_.from, step / options_.steps);
    }
    /// The integral of dt / a, with dt = sqrt(a) da.
    double kick(double from, double to) const {
        if (!options_.expands()) return options_.time_step * (to - from);
        return 2 * (std::sqrt(a(to)) - std::sqrt(a(from)));
    }
    /// The integral of dt / a^2.
    double drift(double from, double to) const {
        if (!options_.expands()) return options_.time_step * (to - from);
        return 2 * (1 / std::sqrt(a(from)) - 1 / std::sqrt(a(to)));
    }

private:
    const Options &options_;
};

#endif
