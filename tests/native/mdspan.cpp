// C++23: std::mdspan is sent and received, in every layout, and std::span too. One side of a pair, "left" or "right".
#include <mdspan>
#include <numeric>
#include <span>

#include "check.hpp"

using Extents2 = std::dextents<std::size_t, 2>;

static void left(titin::Instance &instance) {
    std::vector<double> u(24);
    std::iota(u.begin(), u.end(), 0.0);
    instance.send("out", std::mdspan(u.data(), 4, 6), 0.0);
    instance.send("out", std::mdspan<double, Extents2, std::layout_left>(u.data(), 4, 6), 1.0);
    // Every second column of the first array.
    const std::array<std::size_t, 2> strides{6, 2};
    const std::layout_stride::mapping<Extents2> mapping(Extents2(4, 3), strides);
    instance.send("out", std::mdspan<const double, Extents2, std::layout_stride>(u.data(), mapping), 2.0);
    instance.send("out", std::mdspan<double, std::extents<int, 2, 3, 4>>(u.data()), 3.0);
    instance.send("out", std::span(u).subspan(4, 3), 4.0);
    const titin::Message empty = instance.receive("in");
    CHECK(empty.array<double>().mdspan<2>().extent(0) == 0 && empty.array<double>().mdspan<2>().extent(1) == 5);
}

static void right(titin::Instance &instance) {
    const titin::Message rows = instance.receive("in"), columns = instance.receive("in");
    const auto first = rows.array<double>().mdspan<2>(), second = columns.array<double>().mdspan<2>();
    CHECK(rows.array<double>().order() == titin::Order::C && columns.array<double>().order() == titin::Order::Fortran);
    CHECK(first.extent(0) == 4 && first.extent(1) == 6 && second.extent(0) == 4 && second.extent(1) == 6);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 6; ++j) {
            CHECK((first[i, j] == 6 * i + j && second[i, j] == i + 4 * j));
            CHECK((rows.array<double>()(i, j) == first[i, j] && columns.array<double>()(i, j) == second[i, j]));
        }
    // Receives into own memory in another layout. Each element keeps its index.
    std::vector<double> own(12);
    const std::mdspan<double, Extents2, std::layout_left> turned(own.data(), 4, 3);
    instance.receive_into("in", turned);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 3; ++j) CHECK((turned[i, j] == 6 * i + 2 * j));
    const titin::Message cube = instance.receive("in");
    CHECK((cube.array<double>().mdspan<3>()[1, 2, 3] == 23.0));
    try {
        cube.array<double>().mdspan<2>();
        CHECK(!"a cube as a table");
    } catch (const titin::TypeMismatch &error) {
        CHECK(std::string(error.what()).find("rank 3") != std::string::npos);
    }
    const titin::Message part = instance.receive("in");
    const std::span<const double> view = part.array<double>();
    CHECK(view.size() == 3 && view.front() == 4.0);
    instance.send("out", std::mdspan(own.data(), 0, 5), 5.0);
}

int main(int argc, char **argv) {
    return guarded([&] {
        CHECK(argc == 2);
        titin::Instance instance({{titin::O_I, {"out"}}, {titin::S, {"in"}}});
        instance.run([&] {
            if (argv[1] == std::string("left")) left(instance);
            else right(instance);
        });
    });
}
