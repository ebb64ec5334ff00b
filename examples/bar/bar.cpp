// A bar that conducts heat, in two halves: `bar left ADDRESS` listens there, `bar right ADDRESS` opens the path.
#include <cstdio>
#include <iostream>
#include <string>
#include <titin/path.hpp>
#include <vector>

constexpr int cells = 50, steps = 2000;

titin::Path path_of(bool left, const std::string &address) {
    return left ? titin::PathListener(address).accept() : titin::Path(address, "bar");
}

void half(bool left, const std::string &address) {
    titin::Path path = path_of(left, address);
    // Cells 1 to `cells` are this half's; the first and the last are its neighbours'. The left end is hot.
    std::vector<double> u(cells + 2);
    if (left) u[0] = 100;
    const int own = left ? cells : 1, other = left ? cells + 1 : 0;
    for (int step = 0; step < steps; step++) {
        path.exchange(titin::Span(&u[own], {1}), titin::Span(&u[other], {1}));
        const std::vector<double> before = u;
        for (int i = 1; i <= cells; i++) u[i] += 0.25 * (before[i - 1] - 2 * before[i] + before[i + 1]);
    }
    for (int i = 1; i <= cells; i++) std::printf("%.17g\n", u[i]);
    path.close();
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    try {
        half(argv[1] == std::string("left"), argv[2]);
    } catch (const titin::Error &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
