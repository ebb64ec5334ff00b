// A lid-driven cavity, whole or in blocks: one program for any block. A side with a conduit is a seam to
// the block beyond. A side without a conduit is a wall of the cavity; the top wall is the moving lid.

#include "lattice.hpp"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <titin.hpp>
#include <vector>

int main() try {
    std::vector<std::string> to, from;
    for (const std::string name : compass) {
        to.push_back("to_" + name);
        from.push_back("from_" + name);
    }
    titin::Instance instance({{titin::O_I, to}, {titin::S, from}, {titin::O_F, {"fields"}}});

    while (instance.reuse()) {
        // F_INIT
        const auto real = [&](const char *name) { return instance.setting<double>(name); };
        const int cells = int(instance.setting<std::int64_t>("cells"));
        const auto edge = [&](const char *name) { return int(std::lround(real(name) * cells)); };
        Lattice lattice({cells, edge("x0"), edge("x1"), edge("y0"), edge("y1"), real("lid"), real("reynolds")});
        std::vector<int> seams;
        for (int side = 0; side < 8; ++side)
            if (instance.is_connected(to[side])) seams.push_back(side);

        const int steps = int(instance.setting<std::int64_t>("steps"));
        for (int step = 0; step < steps; ++step) {
            // O_I
            for (int side : seams) instance.send(to[side], lattice.leaving(side), step, step + 1);

            // S
            for (int side : seams) {
                const auto msg = instance.receive(from[side]);
                lattice.arrive(side, msg.array<double>({lattice.crossing(side)}).data());
            }
            lattice.step();
        }

        // O_F
        instance.send("fields", titin::Span(lattice.fields(), {5, lattice.ny(), lattice.nx()}), steps);
    }
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
