// What is computed: the settings, which both programs read alike.
#pragma once

#include "mesh.hpp"
#include "tube.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

struct Case {
    Tube tube;
    int level_m, level_n;
    double viscosity; // in cells squared per step
    // The force along the tube in cells per step squared: its mean, and how far it swings about it, as a part of the mean, in how
    // many steps.
    double force, swing;
    int period;
    // The number of steps; the first step of which there is a sample, and from how many steps to how many another.
    int steps, from, every;
    std::vector<std::array<double, 3>> probes;

    Cut cut(int parts) const { return {tube, level_m, level_n, parts}; }
    // Whether a step, counted from 1, ends with a sample; and the number of samples of a run.
    bool has_sample(int step) const { return step >= from && (step - from) % every == 0; }
    int samples() const { return steps < from ? 0 : (steps - from) / every + 1; }
    // The step of a sample, counted from 0.
    int step(int sample) const { return from + sample * every; }
    double force_at(int step) const;
};

// sin(2 pi t) for t from 0 to 1, from additions and products alone: the sine of a mathematical library may differ in the last bit
// from that of another.
inline double wave(double t) {
    const double quarter = t < 0.25 ? t : t < 0.75 ? 0.5 - t : t - 1.0; // the same sine, from -1/4 to 1/4
    const double x = 6.283185307179586 * quarter, square = x * x;
    double sum = 0.0, factor = 1.0;
    constexpr int terms = 10;
    double shares[terms];
    for (int k = 0; k < terms; factor /= -double((2 * k + 2) * (2 * k + 3)), ++k) shares[k] = factor;
    for (int k = terms - 1; k >= 0; --k) sum = sum * square + shares[k];
    return x * sum;
}

inline double Case::force_at(int step) const {
    return force * (1.0 + swing * wave(double(step % period) / double(period)));
}

// Reads the case by functions that look a setting up by its name, and refuses what makes no sense.
template <class Real, class Whole, class Points>
Case read_case(const Real &real, const Whole &whole, const Points &points) {
    const double radius = real("radius"), bulge = real("bulge"), length = real("bulge_length");
    const int level_n = int(whole("level_n"));
    const double viscosity = real("viscosity"), cells = radius * std::ldexp(1.0, level_n);
    // A straight tube of this radius under this force has the Reynolds number that is asked for, by its diameter and mean velocity.
    const double velocity = real("reynolds") * viscosity / (2.0 * cells), force = 8.0 * viscosity * velocity / (cells * cells);
    const Case found = {Tube(radius, bulge, length), int(whole("level_m")), level_n, viscosity, force, real("swing"),
                        int(whole("period")), int(whole("steps")), int(whole("from")), int(whole("every")), points("probes")};
    const auto refuse = [](const std::string &text) { throw std::runtime_error(text); };
    if (!(radius > 0.0 && bulge >= radius)) refuse("the settings `radius` and `bulge`: radius is to be above 0, and bulge no less than it");
    if (!(length > 0.0 && length <= 1.0)) refuse("the setting `bulge_length` is to be above 0, and 1 at most");
    if (found.period < 1 || found.steps < 1 || found.from < 1 || found.every < 1)
        refuse("the settings `period`, `steps`, `from` and `every` are to be 1 or more");
    if (found.samples() == 0) refuse("there would be no sample: set `from` to a step up to `steps`");
    if (found.probes.empty()) refuse("the setting `probes` is to have a point or more");
    return found;
}
