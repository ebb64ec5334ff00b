// Logistic growth in each cell by itself, in a frame: the fast model of the pair.

#include <iostream>
#include <titin.hpp>
#include <vector>

class Growth : public titin::Submodel {
public:
    Growth() : Submodel({{titin::F_INIT, {"initial_state"}}, {titin::O_F, {"final_state"}}}) {}

private:
    void init() override {
        k = instance.setting<double>("k"), dt = instance.setting<double>("dt");
        const auto message = instance.receive("initial_state");
        time = message.timestamp();
        u = message.array<double>({titin::any}).vector();
    }
    void solve() override {
        for (double &here : u) here += dt * k * here * (1.0 - here);
        time += dt;
    }
    void finish() override { instance.send("final_state", u, time); }

    double k = 0.0, dt = 0.0;
    std::vector<double> u;
};

int main() try {
    Growth().run();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
