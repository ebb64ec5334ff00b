// The integral of exp(-x*x) from 0 to a limit. The ranks share the work: each adds up some of the points.

#include <cmath>
#include <iostream>
#include <titin_mpi.hpp>

static void integrate() {
    titin::Instance instance("f_init: limit; o_f: integral", titin::mpi::ranks(MPI_COMM_WORLD));
    while (instance.reuse()) {
        // F_INIT: all ranks get the message that rank 0 receives.
        const auto points = instance.setting<std::int64_t>("points");
        const auto msg = instance.receive("limit");
        const double dx = msg.value().as<double>() / double(points);

        // S
        double mine = 0.0, sum = 0.0;
        for (std::int64_t i = instance.rank(); i < points; i += instance.ranks()) {
            const double x = (double(i) + 0.5) * dx;
            mine += std::exp(-x * x) * dx;
        }
        MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);

        // O_F: all ranks call send, and the data of rank 0 go out.
        instance.send("integral", sum, msg.timestamp());
    }
}

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    integrate();
    MPI_Finalize();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
