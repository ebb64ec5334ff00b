// Diffusion along a line: the slow, coarse model of the pair.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <titin.hpp>
#include <vector>

int main() try {
    titin::Instance instance({{titin::O_I, {"state_out"}}, {titin::S, {"state_in"}}, {titin::O_F, {"final_state"}}});
    while (instance.reuse()) {
        // F_INIT
        const auto d = instance.setting<double>("d"), dx = instance.setting<double>("dx");
        const auto dt = instance.setting<double>("dt"), t_max = instance.setting<double>("t_max");
        const auto cells = std::size_t(instance.setting<std::int64_t>("cells"));
        std::vector<double> u(cells, 0.0), next(cells);
        std::fill_n(u.begin(), cells / 10, 1.0);
        const double a = d * dt / (dx * dx);

        double t = 0.0;
        for (long step = 0; step < std::lround(t_max / dt); ++step) {
            // O_I
            t = step * dt;
            instance.send("state_out", u, t, t + dt);

            // S
            instance.receive_into("state_in", u);
            for (std::size_t i = 1; i + 1 < cells; ++i) next[i] = u[i] + a * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
            next[0] = next[1];
            next[cells - 1] = next[cells - 2];
            u.swap(next);
        }

        // O_F
        instance.send("final_state", u, t + dt);
    }
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
