// Adds 1 to the numbers of global arrays in each use. Runs on four processes.
#include <iostream>
#include <titin_ga.hpp>
#include <vector>

static int made(const std::string &name) {
    int plane[] = {13, 7}, blocks[] = {2, 1}, map[] = {0, 4, 0}, sizes[] = {3, 2};
    char text[] = "array";
    if (name == "even") return NGA_Create(C_DBL, 2, plane, text, nullptr);
    if (name == "few") return NGA_Create_irreg(C_INT, 2, plane, text, blocks, map);
    const int g_a = GA_Create_handle();
    GA_Set_data(g_a, 2, plane, C_DBL);
    GA_Set_block_cyclic(g_a, sizes);
    GA_Allocate(g_a);
    return g_a;
}

static void add() {
    titin::Instance instance("f_init: even, few, cyclic; o_f: even_back, few_back, cyclic_back", titin::ga::ranks());
    std::vector<titin::ga::Field> in, out;
    std::vector<int> arrays;
    for (const std::string name : {"even", "few", "cyclic"}) {
        arrays.push_back(made(name));
        in.emplace_back(instance.port(name), arrays.back());
        out.emplace_back(instance.port(name + "_back"), arrays.back());
    }
    double one = 1;
    int whole = 1;
    while (instance.reuse()) {
        titin::Stamps stamps{0, {}};
        for (std::size_t i = 0; i < 3; ++i) {
            stamps = in[i].receive();
            GA_Add_constant(arrays[i], i == 1 ? static_cast<void *>(&whole) : &one);
        }
        for (titin::ga::Field &field : out) field.send(stamps.timestamp);
    }
}

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    add();
    GA_Terminate();
    MPI_Finalize();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
