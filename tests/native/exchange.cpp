// One side of an exchange, "left" or "right": the script of exchange.c.
#include <cstring>
#include <limits>
#include <type_traits>

#include "check.hpp"

using titin::Value;

/// Elements for which Fortran has no kind. C++17 has no type for float16, which is sent as bits.
static const std::uint16_t f16[] = {0, 0xc000, 0x3c00};
static const std::vector<titin::bfloat16> brains = {titin::bfloat16(0.0F), titin::bfloat16(-2.0F), titin::bfloat16(1.0F)};

template <class T>
static std::vector<T> unusual() {
    return {0, std::numeric_limits<T>::max(), 2};
}

template <class T>
static void receive_unusual(titin::Instance &instance) {
    const titin::Message message = instance.receive("in");
    CHECK(message.array<T>({3}).vector() == unusual<T>());
    refused<titin::TypeMismatch>("with a sign", [&] { message.array<std::make_signed_t<T>>(); });
}

/// Sends arrays in titin's memory.
static void lend(titin::Instance &instance) {
    for (const titin::Order order : {titin::Order::C, titin::Order::Fortran}) {
        auto loan = instance.loan<double>("out", {100, 200}, order);
        CHECK(loan.size() == 20000 && loan.rank() == 2 && loan.extent(1) == 200 && loan.order() == order);
        for (int i = 0; i < 100; ++i)
            for (int j = 0; j < 200; ++j) loan(i, j) = 1000 * i + j;
        auto moved = std::move(loan);
        CHECK(moved && !loan && moved.begin()[0] == 0.0 && &moved[0] == moved.span().data());
        refused<titin::UsageError>("one moved from", [&] { instance.send("out", std::move(loan), 8.0); });
        instance.send("out", std::move(moved), order == titin::Order::C ? 8.5 : 8.75);
        CHECK(!moved);
        refused<titin::UsageError>("one sent", [&] { moved[0] = 1.0; });
    }
    const auto unsent = instance.loan<int>("out", {});
    CHECK(unsent.size() == 1);
}

/// A std::vector<bool> in a value. A std::vector<bool> has no memory with one element after the other.
static void flags_in_values() {
    const std::vector<bool> bits = {true, false, true, true};
    const Value value = Value::map({{"array", Value::array(bits)}, {"item", bits}, {"list", Value::list({bits})}});
    CHECK(value["array"].array<bool>().vector() == bits);
    CHECK(value["item"].array<bool>().vector() == bits);
    CHECK(value["list"][0].array<bool>({4}).vector() == bits);
}

static void left(titin::Instance &instance) {
    flags_in_values();
    std::vector<double> line(10);
    for (int i = 0; i < 10; ++i) line[std::size_t(i)] = 0.5 * i;
    const std::int32_t table[2][3] = {{0, 1, 2}, {10, 11, 12}};
    double grid[12];
    for (int i = 0; i < 12; ++i) grid[i] = 10 * (i / 4) + i % 4;
    instance.send("out", line, 0.0, 1.0);
    instance.send_named("out", table, {"x", "y"}, 1.0);
    instance.send("out", titin::Span(grid + 3, {2, 2}, titin::Extents{8, -2}), 2.0);
    const std::complex<double> waves[] = {{1.0, -2.0}, {0.0, 3.0}};
    instance.send("out", waves, {2}, 3.0);
    instance.send("out", std::vector<bool>{true, false, true}, 4.0);
    instance.send("out", 2.5, 5.0);
    instance.send("out", std::vector<double>(), 6.0);
    instance.send_nil("out", 7.0, titin::no_next, Value::map({{"k", 7.0}}));
    instance.send("out",
                  Value::map({{"name", "wall"}, {"flux", 3.5}, {"line", line}, {"list", Value::list({1, std::string_view("two"), true})}}),
                  8.0);
    instance.send("out", unusual<std::uint8_t>(), 8.0);
    instance.send("out", unusual<std::uint16_t>(), 8.0);
    instance.send("out", unusual<std::uint32_t>(), 8.0);
    instance.send("out", unusual<std::uint64_t>(), 8.0);
    const std::int64_t three = 3;
    CHECK(titin_send(titin_port_find(instance.raw(), "out"), TITIN_NO_SLOT, TITIN_F16, 1, &three, f16, 8.0, TITIN_NO_NEXT) == 0);
    instance.send("out", brains, 8.0);
    instance.send("out",
                  Value::map({{"bits", Value::array(unusual<std::uint32_t>())}, {"large", std::numeric_limits<std::uint64_t>::max()}}),
                  8.0);
    instance.send("out", unusual<std::uint16_t>(), 8.0);
    lend(instance);
    const titin::Message back = instance.receive("in");
    CHECK(back.timestamp() == 9.0 && back.array<double>().vector() == line);
}

static void right(titin::Instance &instance) {
    const titin::Message line = instance.receive("in");
    CHECK(line.timestamp() == 0.0 && line.next_timestamp() == 1.0);
    CHECK(line.array<double>().size() == 10 && line.array<double>()[9] == 4.5);
    try {
        line.array<float>();
        CHECK(!"a view of another type");
    } catch (const titin::TypeMismatch &error) {
        const std::string text = error.what();
        CHECK(text.find("port 'in', message from ") == 0);
        CHECK(text.find(".out: expected an array of float32, found float64 of shape [10]: let its sender") != std::string::npos);
    }
    CHECK(line.array<double>({titin::any})[9] == 4.5 && line.array<double>({10}, titin::Order::Fortran).size() == 10);
    refused<titin::TypeMismatch>("another extent", [&] { line.array<double>({11}); });
    refused<titin::TypeMismatch>("another rank", [&] { line.array<double>({titin::any, titin::any}); });
    refused<titin::TypeMismatch>("another type", [&] { line.array<float>({titin::any}); });
    CHECK(std::string(titin_error()).find(".out: expected an array of float32 of rank 1, found float64 of shape [10]") !=
          std::string::npos);
    const titin::Message table = instance.receive("in");
    const auto view = table.array<std::int32_t>();
    CHECK(view(1, 2) == 12 && view(0, 1) == 1 && table.index_name(1) == "y");
    double part[2][2];
    refused<titin::UsageError>("a row twice", [&] { instance.receive_into("in", titin::Span(&part[0][0], {2, 2}, {0, 1})); });
    instance.receive_into("in", part);
    CHECK(part[0][0] == 3.0 && part[0][1] == 1.0 && part[1][0] == 23.0 && part[1][1] == 21.0);
    const titin::Message waves = instance.receive("in");
    CHECK(waves.array<std::complex<double>>()[0].imag() == -2.0 && waves.timestamp() == 3.0 && !waves.next_timestamp());
    const titin::Message flags = instance.receive("in");
    CHECK(flags.array<bool>()[0] && !flags.array<bool>()[1]);
    CHECK(instance.receive("in").value().as<double>() == 2.5);
    CHECK(instance.receive("in").array<double>().empty());
    const titin::Message nil = instance.receive("in");
    CHECK(nil.is_nil() && nil.settings()["k"].as<double>() == 7.0);
    const titin::Received last = instance.receive_any({"in"});
    const titin::ValueView map = last.message.value();
    CHECK(map["name"].as<std::string>() == "wall" && map["flux"].as<double>() == 3.5);
    CHECK(map["line"].array<double>({10})[9] == 4.5 && !map.contains("absent"));
    CHECK(map["list"].size() == 3 && map["list"][0].as<int>() == 1 && map["list"][1].as<std::string>() == "two");
    CHECK(map["list"][2].as<bool>());

    receive_unusual<std::uint8_t>(instance);
    receive_unusual<std::uint16_t>(instance);
    receive_unusual<std::uint32_t>(instance);
    receive_unusual<std::uint64_t>(instance);
    const titin::Message halves = instance.receive("in");
    std::int64_t count = titin::any;
    const void *bits = titin_message_array(halves.raw(), TITIN_F16, 1, &count, TITIN_ORDER_C);
    CHECK(bits && count == 3 && std::memcmp(bits, f16, sizeof f16) == 0);
    CHECK(instance.receive("in").array<titin::bfloat16>({titin::any}).vector() == brains);
    const titin::Message several = instance.receive("in");
    CHECK(several.value()["bits"].array<std::uint32_t>({3}).vector() == unusual<std::uint32_t>());
    CHECK(several.value()["large"].as<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
    CHECK(instance.receive("in").array<std::uint16_t>({titin::any}).vector() == unusual<std::uint16_t>());

    for (const double timestamp : {8.5, 8.75}) {
        const titin::Message lent = instance.receive("in");
        CHECK(lent.timestamp() == timestamp && lent.array<double>()(99, 198) == 99198.0);
    }

    CHECK(!instance.try_receive("in"));
    const std::chrono::milliseconds soon(10);
    refused<titin::Timeout>("a message", [&] { instance.receive("in", soon); });
    refused<titin::Timeout>("an array", [&] { instance.receive_into("in", part, soon); });
    refused<titin::Timeout>("any message", [&] { instance.receive_any({instance.port("in")}, soon); });
    refused<titin::Timeout>("any of all", [&] { instance.receive_any(std::vector<std::string>{"in"}, soon); });
    refused<titin::UsageError>("a slot", [&] { instance.receive_any({{"in", 0}}); });
    instance.send("out", line.array<double>(), 9.0);
}

static void settings(const titin::Instance &instance) {
    CHECK(instance.setting<double>("k") == 0.5 && instance.setting<int>("n") == 3 && instance.setting<bool>("flag"));
    CHECK(instance.setting<std::string>("text") == "some text");
    CHECK(instance.setting<double>("dt", titin::Unit{"s"}) == 0.01);
    CHECK(instance.setting<double>("absent", 8) == 8.0 && !instance.has_setting("absent"));
    CHECK(instance.setting<std::vector<double>>("floats")[1] == 2.5 && instance.setting<std::vector<int>>("ints")[2] == 3);
    CHECK(instance.setting<std::vector<std::vector<double>>>("table")[1][0] == 3.0);
    try {
        instance.setting<double>("absent");
        CHECK(!"a setting that is not there");
    } catch (const titin::SettingError &) {
    }
}

int main(int argc, char **argv) {
    return guarded([&] {
        CHECK(argc == 2);
        titin::Instance instance({{titin::O_I, {"out"}}, {titin::S, {"in"}}});
        CHECK(instance.port("out").op() == titin::O_I && instance.is_connected("in"));
        instance.run([&] {
            const auto region = instance.region("exchange");
            settings(instance);
            if (argv[1] == std::string("left")) left(instance);
            else right(instance);
        });
    });
}
