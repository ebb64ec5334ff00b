// Logistic growth in each cell by itself: the fast model of the pair.

#include <cmath>
#include <iostream>
#include <titin.hpp>
#include <vector>

int main() try {
    titin::Instance instance({{titin::F_INIT, {"initial_state"}}, {titin::O_F, {"final_state"}}});
    while (instance.reuse()) {
        // F_INIT
        const auto k = instance.setting<double>("k");
        const auto dt = instance.setting<double>("dt"), t_max = instance.setting<double>("t_max");
        const auto msg = instance.receive("initial_state");
        const auto initial = msg.array<double>({titin::any});
        std::vector<double> u(initial.begin(), initial.end());

        // S
        for (long step = 0; step < std::lround(t_max / dt); ++step)
            for (double &here : u) here += dt * k * here * (1.0 - here);

        // O_F
        instance.send("final_state", u, msg.timestamp() + t_max);
    }
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
