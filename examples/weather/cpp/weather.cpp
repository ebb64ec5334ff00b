// A shower drifts over the land. Each rank has some rows. Other programs take the rain when they like.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <titin_mpi.hpp>
#include <vector>

// The first row of a process, of n rows that are spread evenly.
static int begin(int n, int processes, int process) { return n / processes * process + std::min(process, n % processes); }

static void drift() {
    titin::Instance instance("o_i: rain", titin::mpi::ranks(MPI_COMM_WORLD));
    const int rank = instance.rank(), ranks = instance.ranks();
    const auto ny = instance.setting<int>("ny"), nx = instance.setting<int>("nx"), steps = instance.setting<int>("steps");
    const auto dt = instance.setting<double>("dt");
    const std::chrono::duration<double> pace(instance.setting<double>("pace"));
    titin::Field rain = instance.field<double>("rain", titin::Decomposition({ny, nx}).grid({ranks, 1}));
    const int first = begin(ny, ranks, rank), mine = begin(ny, ranks, rank + 1) - first;
    std::vector<double> u(rain.elements());

    while (instance.reuse()) {
        for (int step = 0; step < steps; ++step) {
            for (int i = 0; i < mine; ++i)
                for (int j = 0; j < nx; ++j)
                    u[i * nx + j] = std::max(0.0, 20.0 - std::abs(first + i - 15 - step / 2) - std::abs(j - 2 * step));

            // O_I
            rain.send(step * dt, (step + 1) * dt, u);

            // S: a pause in place of a larger model.
            const auto work = instance.region("work");
            std::this_thread::sleep_for(pace);
        }
    }
}

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    drift();
    MPI_Finalize();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
