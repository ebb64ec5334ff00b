// Heat spreads through a plate, of which each rank has some rows. Another program computes the loss to the air.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <titin_mpi.hpp>
#include <vector>

static void conduct() {
    titin::Instance instance("o_i: temperature; s: loss", titin::mpi::ranks(MPI_COMM_WORLD));
    const int rank = instance.rank(), ranks = instance.ranks();
    const auto ny = instance.setting<int>("ny"), nx = instance.setting<int>("nx");
    const auto d = instance.setting<double>("d"), dt = instance.setting<double>("dt");
    const auto t_max = instance.setting<double>("t_max");

    // The temperature has a halo of one on all sides; the loss has none.
    auto rows = titin::Decomposition({ny, nx}).grid({ranks, 1});
    titin::Field loss = instance.field<double>("loss", rows);
    titin::Field temperature = instance.field<double>("temperature", rows.halo(1));

    // A hot patch on a cold plate, whose rim stays cold.
    const std::vector<std::int64_t> row = loss.owned(0);
    const int mine = int(row.size()), width = nx + 2;
    std::vector<double> u(temperature.elements(), 0.0), next(u), q(loss.elements());
    for (int i = 0; i < mine; ++i)
        for (int j = nx / 5; j < nx / 2; ++j)
            if (row[std::size_t(i)] >= ny / 6 && row[std::size_t(i)] < ny / 2) u[std::size_t((i + 1) * width + j + 1)] = 100.0;
    const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;

    while (instance.reuse()) {
        for (long step = 0; step < std::lround(t_max / dt); ++step) {
            // O_I
            const double t = step * dt;
            temperature.send(t, t + dt, u);

            // S
            loss.receive(q);
            MPI_Sendrecv(&u[width], width, MPI_DOUBLE, above, 0, &u[(mine + 1) * width], width, MPI_DOUBLE, below, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Sendrecv(&u[mine * width], width, MPI_DOUBLE, below, 0, &u[0], width, MPI_DOUBLE, above, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            for (int i = 0; i < mine; ++i)
                for (int j = 0; j < nx; ++j) {
                    const int c = (i + 1) * width + j + 1;
                    const double around = (u[c - width] + u[c + width]) + (u[c - 1] + u[c + 1]);
                    next[c] = u[c] + dt * (d * (around - 4.0 * u[c]) - q[i * nx + j]);
                }
            u.swap(next);
        }
    }
}

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    conduct();
    MPI_Finalize();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
