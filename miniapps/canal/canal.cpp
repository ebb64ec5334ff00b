// A canal section, on any number of ranks: the whole canal or a part. An end with conduits is a seam to the next section, an end
// without is a wall.

#include "lattice.hpp"
#include "ranks.hpp"
#include "seam.hpp"
#include "watch.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <titin_mpi.hpp>
#include <vector>

namespace {

struct Section {
    Block block;    // of this rank
    int begin;      // first point of the section, along the canal
    int ny, nz, nx; // points of all ranks: across, upwards and along
};

Section section(titin::Instance &instance, const Ranks &ranks) {
    const auto real = [&](const char *name) { return instance.setting<double>(name); };
    const auto points = [&](const char *name) { return int(std::lround(real(name) * real("resolution"))) + 1; };
    const int nx = points("length"), ny = points("width"), nz = points("depth");
    const int first = int(std::lround(real("x0") * nx)), last = int(std::lround(real("x1") * nx));
    if (last - first < ranks.along() || ny < ranks.across())
        throw std::runtime_error("a section of " + std::to_string(last - first) + " points along the canal and " +
                                 std::to_string(ny) + " across it is too small for " + std::to_string(ranks.along()) + " by " +
                                 std::to_string(ranks.across()) + " ranks: take fewer, or a higher `resolution`");
    const auto x = [&](int part) { return first + begin(part, ranks.along(), last - first); };
    const auto y = [&](int part) { return begin(part, ranks.across(), ny); };
    const double lid_x = real("lid_x"), lid_y = real("lid_y");
    const double viscosity = std::hypot(lid_x, lid_y) * nz / real("reynolds");
    const int along = ranks.place_along(), across = ranks.place_across();
    const Block block = {nx, ny, nz, x(along), x(along + 1), y(across), y(across + 1), lid_x, lid_y, viscosity};
    return {block, first, ny, nz, last - first};
}

// Times, the extents of the section and the fingerprint of its state. For rank 0.
titin::Value report(const Watch &watch, const Ranks &ranks, const Lattice &lattice, const Section &here) {
    titin::Value report = watch.report(ranks.comm());
    const std::uint64_t part = lattice.fingerprint();
    std::uint64_t sum = 0;
    MPI_Reduce(&part, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, ranks.comm());
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
    report.set("extents", titin::Value::list({here.ny, here.nz, here.nx}));
    report.set("begin", here.begin);
    report.set("fingerprint", text);
    report.set("ranks", ranks.count());
    return report;
}

void solve(titin::Instance &instance) {
    // F_INIT
    Ranks ranks(MPI_COMM_WORLD, int(instance.setting<std::int64_t>("across")));
    const Section here = section(instance, ranks);
    const int steps = int(instance.setting<std::int64_t>("steps")), warmup = int(instance.setting<std::int64_t>("warmup"));
    Lattice lattice(here.block);
    std::vector<std::unique_ptr<Seam>> seams;
    const bool overlap = instance.setting<bool>("overlap");
    bool first[2] = {false, false}; // west and east: whether this rank computes what leaves there before all the rest
    for (Side end : {west, east})
        if (instance.is_connected(end == west ? "to_left" : "to_right")) {
            seams.push_back(seam(instance, end, instance.setting<std::string>("exchange"), ranks, lattice, here.ny));
            first[end] = overlap && ranks.is_at(end);
        }

    Watch watch;
    for (int step = 0; step < steps; ++step) {
        if (step == warmup) watch = Watch();
        lattice.begin(first[west], first[east]);
        if (!overlap) lattice.finish();
        watch.lap(Watch::collide);

        // O_I
        for (auto &seam : seams) seam->gather(lattice);
        watch.lap(Watch::gather);
        for (auto &seam : seams) seam->send(lattice, step, step + 1);
        watch.lap(Watch::exchange);
        if (overlap) lattice.finish();
        watch.lap(Watch::collide);
        ranks.exchange_along(lattice);
        watch.lap(Watch::halo);

        // S
        for (auto &seam : seams) seam->receive(lattice);
        watch.lap(Watch::exchange);
        for (auto &seam : seams) seam->update(lattice);
        watch.lap(Watch::update);
        ranks.exchange_across(lattice);
        watch.lap(Watch::halo);
        watch.step();
    }

    // O_F
    instance.send("report", report(watch, ranks, lattice, here), steps);
    if (instance.is_connected("flow")) {
        const auto spread = titin::Decomposition({here.ny, here.nz, here.nx})
                                .grid({ranks.across(), 1, ranks.along()})
                                .ranks(titin::Order::Fortran);
        instance.field<double, double, double, double>("flow", spread).send(steps, lattice.flow());
    }
}

} // namespace

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    {
        titin::Instance instance({{titin::O_I, {"to_left", "to_right"}},
                                  {titin::S, {"from_left", "from_right"}},
                                  {titin::O_F, {"report", "flow"}}},
                                 titin::mpi::ranks(MPI_COMM_WORLD));
        instance.run([&] { solve(instance); });
    }
    MPI_Finalize();
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1; // MPI ends the other ranks
}
