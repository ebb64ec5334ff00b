// LB: the lattice Boltzmann solver, on any number of ranks. It sends the flow by a field, and may make the statistics of
// POST_DATA itself.

#include "titin_case.hpp"

#include "exchange.hpp"
#include "lattice.hpp"

#include <exception>
#include <iostream>
#include <mpi.h>
#include <optional>
#include <titin_mpi.hpp>

namespace {

void solve(titin::Instance &instance) {
    // F_INIT
    const Case here = case_of(instance);
    Ranks ranks;
    const Mesh mesh(here.tube, here.cut(ranks.size()), ranks.rank());
    Lattice lattice(mesh, here.viscosity);
    std::optional<titin::Field> out;
    if (instance.is_connected("flow"))
        out.emplace(instance.field<double, double, double, double>("flow", spread(mesh, mesh.cells())));
    Statistics statistics(mesh, here.viscosity, here.probes);
    std::optional<Results> results;
    if (instance.is_connected("report")) results.emplace(instance, mesh, statistics);
    Flow flow = statistics.room();

    const double begin = now();
    for (int step = 1; step <= here.steps; ++step) {
        lattice.step(ranks, here.force_at(step));
        if (!here.has_sample(step)) continue;
        lattice.flow(flow);

        // O_I
        const int next = step + here.every;
        if (out) out->send(step, next <= here.steps ? next : titin::no_next, flow);
        if (!results) continue;
        // Of neighbours on other ranks too, for the shear.
        for (auto &values : flow) ranks.exchange(statistics.partners(), values.data(), values.data() + mesh.size());
        statistics.sample(flow);
    }

    // O_F
    const double end = now();
    const std::uint64_t state = ranks.sum(lattice.fingerprint()), found = ranks.sum(statistics.fingerprint());
    titin::Value times = titin::Value::map();
    times.set("begin", begin);
    times.set("step", (end - begin) / here.steps);
    times.set("state", hexadecimal(state));
    if (results) results->send(here, found, ranks.gather(statistics.series(), statistics.series_sizes()));
    instance.send("times", times, here.steps);
}

} // namespace

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    {
        titin::Instance instance({{titin::O_I, {"flow"}}, {titin::O_F, {"times", "report", "statistics"}}},
                                 titin::mpi::ranks(MPI_COMM_WORLD));
        instance.run([&] { solve(instance); });
    }
    MPI_Finalize();
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1; // MPI ends the other ranks
}
