// What the program writes: the particles as .npy, the steps as CSV, and its progress on a terminal.
#ifndef NBODY_OUTPUT_HPP
#define NBODY_OUTPUT_HPP

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "box.hpp"
#include "options.hpp"
#include "ring.hpp"
#include "tree.hpp"

/// A particle as it is written: position in boxes, momentum a^2 dx/dt, and acceleration of the comoving coordinates.
struct Written {
    std::uint64_t id;
    double values[9];
};

/// Writes all particles by their numbers: an array of float64, (count, 9).
void write_particles(const std::string &file, std::vector<Written> particles);

/// One step at this part.
struct Step {
    int number;
    double a;
    double seconds;       ///< of the step
    double communication; ///< in calls of the ring
    double waiting;       ///< of that, for other parts
    double tree, mesh;    ///< computing near and far forces, without the above
    std::int64_t sent, received; ///< bytes
    std::uint64_t particles, interactions; ///< of this part
    double begin, end;    ///< of its slab
};

class Report {
public:
    explicit Report(const Options &options);
    void add(const Step &step);
    /// A line that sums up the run.
    void finish(int part);

private:
    const Options options_;
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> steps_;
    const bool shows_;
    Step sum_{};
    int count_ = 0;
};

#endif
