// The heat that a warm plate loses to the air. Each rank has some columns.

#include <iostream>
#include <titin_mpi.hpp>
#include <vector>

static void cool() {
    titin::Instance instance("f_init: temperature; o_f: loss", titin::mpi::ranks(MPI_COMM_WORLD));
    const auto ny = instance.setting<int>("ny"), nx = instance.setting<int>("nx");
    const auto k = instance.setting<double>("k");
    const auto columns = titin::Decomposition({ny, nx}).grid({1, instance.ranks()});
    titin::Field temperature = instance.field<double>("temperature", columns);
    titin::Field loss = instance.field<double>("loss", columns);
    std::vector<double> u(temperature.elements());

    while (instance.reuse()) {
        // F_INIT
        const titin::Stamps stamps = temperature.receive(u);

        // S
        for (double &x : u) x *= k;

        // O_F
        loss.send(stamps.timestamp, u);
    }
}

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    cool();
    MPI_Finalize();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
