// Takes versions of a field into a global array, and follows the steps of another field.
#include <iostream>
#include <stdexcept>
#include <titin_ga.hpp>

static void check(bool right, const char *what) {
    if (!right) throw std::runtime_error(what);
}

static void take() {
    titin::Instance instance("o_i: back; s: x, y", titin::ga::ranks());
    int plane[] = {13, 7}, corner[] = {12, 6}, leading[] = {1};
    char text[] = "numbers";
    const int g_a = NGA_Create(C_DBL, 2, plane, text, nullptr);
    titin::ga::Field x(instance.port("x"), g_a), y(instance.port("y"), g_a), back(instance.port("back"), g_a);
    instance.reuse();

    for (const auto &[asked, time] : {std::pair{2.5, 2.0}, {1.0, 1.0}, {5.5, 5.0}}) {
        check(x.receive_at(asked).timestamp == time, "the time of a version");
        double number;
        NGA_Get(g_a, corner, corner, &number, leading);
        check(number == 90 + 1000 * time, "the last number");
        GA_Sync();
    }
    try {
        x.receive_at(-1, std::chrono::hours(1));
        check(false, "before the first");
    } catch (const titin::Evicted &) {}
    check(x.receive().timestamp == 5, "the latest");
    check(!y.receive().coupled(), "a step that is not coupled");
    check(y.receive().timestamp == 1, "a step that is");
    back.send(0);
    back.withdraw();
}

int main(int argc, char **argv) try {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    take();
    GA_Terminate();
    MPI_Finalize();
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
