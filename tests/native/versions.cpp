// One of two programs, "left" or "right". The right program takes versions of the left program's field: the script of
// versions.c.
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

#include "check.hpp"

using namespace std::chrono_literals;
using Numbers = std::array<double, 4>;

static void send(titin::Field &out, double t) { out.send(t, Numbers{t, t + 1, t + 2, t + 3}); }

static void left(titin::Field &out, titin::Field &in) {
    for (int t = 0; t < 4; ++t) send(out, t);
    Numbers numbers{-1};
    CHECK(!in.receive(numbers).coupled() && numbers[0] == -1);
    const titin::Stamps stamps = in.receive(numbers);
    CHECK(stamps.coupled() && stamps.timestamp == 2 && numbers[0] == 2);
    out.withdraw();
}

static void right(titin::Field &out, titin::Field &in) {
    Numbers numbers;
    for (const double asked : {3.0, 2.5}) {
        const titin::Stamps stamps = in.receive_at(asked, numbers);
        CHECK(stamps.timestamp == std::floor(asked) && !stamps.next_timestamp);
        CHECK(numbers[0] == stamps.timestamp && numbers[3] == stamps.timestamp + 3);
    }
    refused<titin::Evicted>("what is not kept", [&] { in.receive_at(0.0, numbers); });
    refused<titin::Timeout>("what is not there yet", [&] { in.receive_at(3.5, 10ms, numbers); });
    CHECK(in.receive(numbers).timestamp == 3);
    refused<titin::UsageError>("to withdraw what is received", [&] { in.withdraw(); });
    send(out, 1);
    send(out, 2);
    refused<titin::PortClosed>("what was withdrawn", [&] {
        while (in.receive(numbers).timestamp == 3) {}
    });
}

int main(int argc, char **argv) {
    return guarded([&] {
        CHECK(argc == 2);
        titin::Instance instance("o_i: out; s: in");
        instance.run([&] {
            auto out = instance.field<double>("out", titin::Decomposition({4}));
            auto in = instance.field<double>("in", titin::Decomposition({4}));
            if (!std::strcmp(argv[1], "left")) left(out, in);
            else right(out, in);
        });
    });
}
