// Diffusion along a line, in a frame: the slow, coarse model of the pair.

#include <algorithm>
#include <iostream>
#include <titin.hpp>
#include <vector>

class Diffusion : public titin::Submodel {
public:
    Diffusion() : Submodel({{titin::O_I, {"state_out"}}, {titin::S, {"state_in"}}, {titin::O_F, {"final_state"}}}) {}

private:
    void init() override {
        const auto d = instance.setting<double>("d"), dx = instance.setting<double>("dx");
        dt = instance.setting<double>("dt");
        const auto cells = std::size_t(instance.setting<std::int64_t>("cells"));
        u.assign(cells, 0.0);
        std::fill_n(u.begin(), cells / 10, 1.0);
        a = d * dt / (dx * dx);
    }
    void observe() override { instance.send("state_out", u, time, time + dt); }
    void solve() override {
        const auto grown = instance.receive("state_in").array<double>({titin::any}).vector();
        const std::size_t cells = grown.size();
        for (std::size_t i = 1; i + 1 < cells; ++i) u[i] = grown[i] + a * (grown[i - 1] - 2.0 * grown[i] + grown[i + 1]);
        u[0] = u[1];
        u[cells - 1] = u[cells - 2];
        time += dt;
    }
    void finish() override { instance.send("final_state", u, time); }

    double dt = 0.0, a = 0.0;
    std::vector<double> u;
};

int main() try {
    Diffusion().run();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
