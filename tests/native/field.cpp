// One side of an exchange of fields, "left" or "right": the script of field.c.
#include <chrono>
#include <cstring>

#include "check.hpp"

using titin::Decomposition;
using titin::Order;
using titin::Spread;

static int keep(void *, void *, int64_t) { return 0; }

static int give(void *, const void *mine, void *all, int64_t count) {
    std::memcpy(all, mine, std::size_t(count));
    return 0;
}

static void errors(titin::Instance &instance) {
    refused<titin::UsageError>("8 dimensions", [] { Decomposition({1, 1, 1, 1, 1, 1, 1, 1}); });
    refused<titin::UsageError>("a dimension that is not there", [] { Decomposition({10}).spread(1, Spread::even); });
    refused<titin::UsageError>("cyclic in no blocks", [] { Decomposition({10}).spread(0, Spread::cyclic, 0); });
    refused<titin::UsageError>("a negative bound", [] { Decomposition({10}).box({-1}, {3}); });
    refused<titin::UsageError>("a grid of two dimensions", [] { Decomposition({10}).grid({1, 1}); });
    refused<titin::UsageError>("more processes than ranks",
                               [&] { instance.field<double>("out", Decomposition({10}).grid({2})); });
    refused<titin::UsageError>("no such port", [&] { instance.field<double>("nowhere", Decomposition({10})); });
}

static void left(titin::Instance &instance) {
    const std::vector<std::size_t> shape{6, 4};
    const auto grid = Decomposition(shape).grid({instance.ranks(), 1}).ranks(Order::Fortran).spread(0, Spread::cyclic, 2)
                          .bounds(1, {0, 4}).halo({1, 1}, {1, 1}).halo(1);
    titin::Field send = instance.field<double, std::int32_t>("out", grid);
    CHECK(send.arrays() == 2 && send.bytes() == 384 && send.bytes(1) == 192 && send.elements(1) == 48);
    refused<titin::UsageError>("a third array", [&] { send.bytes(2); });
    CHECK((send.extents() == std::vector<std::int64_t>{8, 6} && send.owned(1) == std::vector<std::int64_t>{0, 1, 2, 3}));
    refused<titin::UsageError>("a third dimension", [&] { send.owned(2); });

    std::vector<std::int64_t> numbers;
    for (int i = 0; i < 10; ++i) numbers.push_back(9 - i);
    auto receive = instance.field("in", Decomposition({10}).indices(numbers), {TITIN_F64});
    std::vector<double> line(10);
    refused<titin::Timeout>("what is not there yet", [&] { receive.receive(std::chrono::milliseconds(10), line); });

    double a[8][6];
    std::vector<std::int32_t> b(48, -1);
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 6; ++j) {
            const bool inside = i > 0 && i < 7 && j > 0 && j < 5;
            a[i][j] = inside ? 10 * (i - 1) + j - 1 : -1;
            if (inside) b[std::size_t(6 * i + j)] = 100 + 10 * (i - 1) + j - 1;
        }
    refused_saying<titin::UsageError>("'out': it has 2 arrays, and 1 were given", [&] { send.send(1.0, a); });
    refused_saying<titin::UsageError>("'out': array 1 of its 2, which count from 0, has 192 bytes on this rank",
                                      [&] { send.send(1.0, a, std::vector<std::int32_t>(47)); });
    refused_saying<titin::TypeMismatch>("'out': array 1 of its 2, which count from 0, is of int32, but one of float32",
                                        [&] { send.send(1.0, a, std::vector<float>(48)); });
    refused<titin::UsageError>("another shape", [&] { send.send(1.0, titin::Span(&a[0][0], {6, 6}), b); });
    refused_saying<titin::UsageError>("has 2 dimensions, but one of 3 was given",
                                      [&] { send.send(1.0, titin::Span(&a[0][0], {2, 4, 6}), b); });
    // The Fortran order of the array in this failed call must not be used for the pointer in the next call.
    refused<titin::UsageError>("a next time before this one", [&] {
        send.send(1.0, 0.5, a, titin::Span(b.data(), {8, 6}, Order::Fortran));
    });
    titin::Field moved = std::move(send);
    refused_saying<titin::UsageError>("was moved from", [&] { send.send(1.0, a, b); });
    moved.send(1.0, 2.0, a, b.data());
    const titin::Stamps stamps = receive.receive(line);
    CHECK(stamps.timestamp == 1.0 && !stamps.next_timestamp);
    for (int i = 0; i < 10; ++i) CHECK(line[std::size_t(i)] == 10 - i);
}

static void right(titin::Instance &instance) {
    auto whole = Decomposition({6, 4}).order(Order::Fortran);
    whole.box({0, 0}, {6, 4});
    auto receive = instance.field("in", whole, {TITIN_F64, TITIN_I32});
    // The first array, with its first dimension backwards.
    double a[4][6], *first = &a[0][5];
    std::vector<std::int32_t> b(24);
    receive.layout(0, {6, 4}, {-1, 6});
    refused<titin::UsageError>("a layout of one dimension", [&] { receive.layout(0, {24}, {1}); });
    refused_saying<titin::UsageError>("share memory", [&] { receive.receive(first, titin::Span(b.data(), {6, 4}, {1, 5})); });
    const titin::Stamps stamps = receive.receive(first, titin::Span(b, {6, 4}, Order::Fortran));
    CHECK(stamps.timestamp == 1.0 && stamps.next_timestamp == 2.0);
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 4; ++j) CHECK(a[j][5 - i] == 10 * i + j && b[std::size_t(6 * j + i)] == 100 + 10 * i + j);

    auto send = instance.field<double>("out", Decomposition({12}).box({6}, {12}).box({0}, {6}).region({1}, {11}));
    refused<titin::UsageError>("too short an array", [&] { send.send(1.0, std::vector<double>(11)); });
    refused<titin::UsageError>("extents of several boxes", [&] { send.extents(); });
    std::vector<std::vector<double>> lines(1);
    for (int i = 0; i < 12; ++i) lines[0].push_back((i + 6) % 12);
    send.send(1.0, lines);
}

int main(int argc, char **argv) {
    return guarded([&] {
        CHECK(argc == 2);
        titin_communicator alone{};
        alone.size = sizeof alone;
        alone.ranks = 1;
        alone.broadcast = keep;
        alone.gather = give;
        titin::Instance instance("o_i: out; s: in", titin::Options().communicator(alone));
        CHECK(instance.rank() == 0 && instance.ranks() == 1);
        instance.run([&] {
            errors(instance);
            if (!std::strcmp(argv[1], "left")) left(instance);
            else right(instance);
        });
    });
}
