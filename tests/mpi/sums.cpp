// Sums the received numbers over its ranks.
#include <titin_mpi.hpp>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    {
        titin::Instance instance("f_init: numbers; o_f: sum", titin::mpi::ranks(MPI_COMM_WORLD));
        while (instance.reuse()) {
            const auto message = instance.receive("numbers");
            const auto numbers = message.array<double>({titin::any});
            double mine = 0, sum = 0;
            for (auto i = std::size_t(rank); i < numbers.size(); i += std::size_t(ranks)) mine += numbers.data()[i];
            MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
            instance.send("sum", sum, message.timestamp());
        }
        instance.close();
    }
    MPI_Finalize();
}
