// `cell a|b rows|columns`: one side of a pair, as cell.h says.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <titin_mpi.hpp>

#include "cell.h"

// These two are signed for x86-64 and unsigned for aarch64.
static_assert(titin::detail::dtype<char>() == TITIN_I8 && titin::detail::dtype<wchar_t>() == TITIN_I32);

static void cell(titin::Instance &instance, bool side, bool rows) {
    const auto spread = titin::Decomposition({NY, NX}).grid({rows ? instance.ranks() : 1, rows ? 1 : instance.ranks()});
    const auto declare = [&](const std::string &port) { return instance.field<double, float, std::int32_t>(port, spread); };
    std::vector<titin::Field> out, in;
    for (const std::string medium : media) {
        out.push_back(declare("out_" + medium));
        in.push_back(declare("in_" + medium));
    }
    titin::Field last = declare("last");
    const auto i = last.owned(0), j = last.owned(1);
    const std::size_t size = i.size() * j.size();
    std::vector<double> u(size), v(size);
    std::vector<float> w(size), x(size);
    std::vector<std::int32_t> k(size), m(size);
    while (instance.reuse()) {
        for (std::size_t p = 0; p < size; ++p) {
            const std::int64_t row = i[p / j.size()], column = j[p % j.size()];
            u[p] = double((row * 259 + column * 37 + 11 * side) % 97) / 97.0;
            w[p] = float((row * 5 + column * 3 + 13 * side) % 31) / 31.0f;
            k[p] = std::int32_t(row * NX + column + side);
        }
        for (int step = 0; step < STEPS; ++step) {
            double mine = 0, top;
            for (const double one : u) mine = std::max(mine, one);
            MPI_Allreduce(&mine, &top, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            const auto medium = std::size_t(step % MEDIA);
            out[medium].send(step, u, w, k);
            in[medium].receive(v, x, m);
            for (std::size_t p = 0; p < size; ++p) {
                const double t = 0.75 * u[p] + 0.25 * v[p];
                u[p] = 3.9 * t * (1.0 - t) * (1.0 - 0.001 * top);
                const float r = 0.75f * w[p] + 0.25f * x[p];
                w[p] = 3.9f * r * (1.0f - r);
                k[p] = (31 * k[p] + m[p]) % 65521;
            }
        }
        last.send(STEPS, u, w, k);
    }
    instance.close();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 3) return 2;
    try {
        titin::Instance instance(nullptr, titin::mpi::ranks(MPI_COMM_WORLD));
        cell(instance, argv[1] == std::string("b"), argv[2] == std::string("rows"));
    } catch (const titin::Error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    MPI_Finalize();
}
