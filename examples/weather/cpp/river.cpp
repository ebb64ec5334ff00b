// The level of a river, in steps of its own length. Each step takes the rain of its time on the catchment, a third of the land.

#include <chrono>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <thread>
#include <titin.hpp>
#include <vector>

static void flow() {
    titin::Instance instance("s: rain");
    const auto ny = instance.setting<int>("ny"), nx = instance.setting<int>("nx"), steps = instance.setting<int>("steps");
    const auto dt = instance.setting<double>("dt"), k = instance.setting<double>("k");
    const std::chrono::duration<double> pace(instance.setting<double>("pace"));
    const auto catchment = titin::Decomposition({ny, nx}).box({0, nx / 3}, {ny, 2 * nx / 3});
    titin::Field rain = instance.field<double>("rain", catchment);
    std::vector<double> u(rain.elements());
    double level = 0;

    std::cout << std::setprecision(17);
    while (instance.reuse()) {
        for (int step = 0; step < steps; ++step) {
            // S: the rain at or before this time.
            const titin::Stamps stamps = rain.receive_at(step * dt, u);
            level += dt * (std::accumulate(u.begin(), u.end(), 0.0) / double(u.size()) - k * level);
            std::cout << step * dt << ' ' << stamps.timestamp << ' ' << level << '\n';
            std::this_thread::sleep_for(pace);
        }
    }
}

int main() try {
    flow();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
