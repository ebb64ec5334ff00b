// POST_DATA: the statistics of the flow, while LB computes it. It is divided as it likes: its ranks say by lists which cells they
// want, those beyond their own cells included, and exchange no cells among themselves.
//
// With -DSERIAL it is a program without MPI, and alone.cpp takes the place of exchange.cpp.

#include "titin_case.hpp"

#include "exchange.hpp"

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#ifndef SERIAL
#include <mpi.h>
#include <titin_mpi.hpp>
#endif

namespace {

void process(titin::Instance &instance) {
    // F_INIT
    const Case here = case_of(instance);
    const std::string coupling = instance.setting<std::string>("coupling");
    if (coupling != "pushed" && coupling != "pulled")
        throw std::runtime_error("the setting `coupling` is \"" + coupling + "\": set it to pushed or to pulled");
    Ranks ranks;
    const Mesh mesh(here.tube, here.cut(ranks.size()), ranks.rank());
    Statistics statistics(mesh, here.viscosity, here.probes);
    titin::Field in = instance.field<double, double, double, double>("flow", spread(mesh, statistics.cells()));
    Results results(instance, mesh, statistics);
    Flow flow = statistics.room();

    for (int sample = 0; sample < here.samples(); ++sample) {
        // S
        const int step = here.step(sample);
        const titin::Stamps stamps = coupling == "pulled" ? in.receive_at(step, flow) : in.receive(flow);
        if (stamps.timestamp != step)
            throw std::runtime_error("the flow of step " + std::to_string(step) + " was wanted, and that of step " +
                                     std::to_string(stamps.timestamp) + " came: LB has other settings, or keeps too few versions");
        statistics.sample(flow);
    }

    // O_F
    const std::uint64_t found = ranks.sum(statistics.fingerprint());
    results.send(here, found, ranks.gather(statistics.series(), statistics.series_sizes()));
}

} // namespace

int main([[maybe_unused]] int argc, [[maybe_unused]] char **argv) try {
    const titin::Ports ports = {{titin::S, {"flow"}}, {titin::O_F, {"report", "statistics"}}};
#ifdef SERIAL
    titin::Instance instance(ports);
    instance.run([&] { process(instance); });
#else
    MPI_Init(&argc, &argv);
    {
        titin::Instance instance(ports, titin::mpi::ranks(MPI_COMM_WORLD));
        instance.run([&] { process(instance); });
    }
    MPI_Finalize();
#endif
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
