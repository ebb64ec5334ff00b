// Shows the latest rain again and again: the amount, and the mean column.

#include <chrono>
#include <iomanip>
#include <iostream>
#include <thread>
#include <titin.hpp>
#include <vector>

static void show() {
    titin::Instance instance("s: rain");
    const auto ny = instance.setting<int>("ny"), nx = instance.setting<int>("nx");
    const std::chrono::duration<double> pace(instance.setting<double>("pace"));
    titin::Field rain = instance.field<double>("rain", titin::Decomposition({ny, nx}));
    std::vector<double> u(rain.elements());

    std::cout << std::setprecision(17);
    while (instance.reuse()) try {
        while (true) {
            // S: the latest version, until the weather has ended and its last version was taken.
            const titin::Stamps stamps = rain.receive(u);
            double sum = 0, moment = 0;
            for (int i = 0; i < ny * nx; ++i) {
                sum += u[i];
                moment += u[i] * (i % nx);
            }
            std::cout << stamps.timestamp << ' ' << sum << ' ' << moment / sum << '\n';
            std::this_thread::sleep_for(pace);
        }
    } catch (const titin::PortClosed &) {}
}

int main() try {
    show();
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
