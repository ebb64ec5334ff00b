// Adds 1 to a field of 17 by 12 numbers, as adds.c.
#include <iostream>

#include <titin_mpi.hpp>

static void add(titin::Instance &instance) {
    constexpr std::size_t halo = 2;
    const auto columns = titin::Decomposition({17, 12}).grid({1, instance.ranks()}).spread(1, titin::Spread::block)
                             .halo({0, halo}, {1, 0});
    titin::Field in = instance.field<double>("ask", columns), out = instance.field<double>("answer", columns);
    const auto length = std::size_t(in.elements()), width = length / 18;
    while (instance.reuse()) {
        std::vector<double> numbers(length, -1.0);
        const titin::Stamps stamps = in.receive(numbers);
        for (std::size_t i = 0; i < length; ++i) {
            const bool owned = i / width < 17 && i % width >= halo;
            if (!owned && numbers[i] != -1.0) throw titin::UsageError("the halo was written");
            if (owned) ++numbers[i];
        }
        out.send(stamps.timestamp, titin::Span(numbers, {width ? 18 : 0, width}));
    }
    instance.close();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int failed = 0;
    try {
        titin::Instance instance("f_init: ask; o_f: answer", titin::mpi::ranks(MPI_COMM_WORLD));
        add(instance);
    } catch (const titin::Error &error) {
        std::cerr << error.what() << '\n';
        failed = 1;
    }
    MPI_Finalize();
    return failed;
}
