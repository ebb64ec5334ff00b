// One instance alone: the script of solo.c.
#include <cmath>
#include <filesystem>

#include "check.hpp"

using titin::Unit;
using titin::Value;

static bool near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

static void known(titin::Instance &instance) {
    const int release[3] = {TITIN_VERSION_MAJOR, TITIN_VERSION_MINOR, TITIN_VERSION_PATCH};
    std::string version;
    for (const int number : release) version += (version.empty() ? "" : ".") + std::to_string(number);
    CHECK(titin::version() == version && version == std::getenv("RELEASE") && instance.name() == "solo");
    CHECK(instance.workdir() == std::filesystem::current_path().string() && instance.time_unit() == "min");
    instance.log(TITIN_LOG_INFO, "alone, and well");
    try {
        instance.log(1000, "too loud");
        CHECK(!"a level of 1000");
    } catch (const titin::UsageError &error) {
        CHECK(error.kind() == TITIN_ERROR_USAGE);
    }
    instance.skip_checks("shows that it can");
}

static void scales(const titin::Instance &instance) {
    const titin::Scale scale = instance.scale();
    CHECK(near(scale.dt.value(), 360.0) && near(scale.total.value(), 144000.0));
    CHECK(scale.dx.size() == 2 && near(scale.dx[1], 2.5e-6) && near(scale.extent[0], 1200.0));
    CHECK(!instance.will_stop(2400.0 - 6.0) && instance.will_stop(2400.0));
}

static void units(const titin::Instance &instance) {
    CHECK(titin::convert(1.5, "h", instance.time_unit()) == 90.0);
    try {
        titin::convert(1.0, "h", "m");
        CHECK(!"hours in metres");
    } catch (const titin::UsageError &) {
    }
    CHECK(near(instance.setting<double>("width", Unit{"m"}), 0.0025));
    CHECK(near(instance.setting<double>("width", Unit{"um"}), 2500.0));
    try {
        instance.setting<double>("width");
        CHECK(!"a length without a unit");
    } catch (const titin::SettingError &error) {
        CHECK(std::string(error.what()).find("in the unit") != std::string::npos);
    }
    CHECK(near(instance.setting<double>("day", Unit{"h"}), 24.0));
    CHECK(instance.setting<double>("plain", Unit{"km"}) == 4.0);
    CHECK(instance.setting<double>("absent", Unit{"km"}, 7.0) == 7.0);
    try {
        instance.setting<double>("width", Unit{"s"});
        CHECK(!"a length in seconds");
    } catch (const titin::SettingError &error) {
        CHECK(std::string(error.what()).find("width") != std::string::npos);
    }
}

static void settings(const titin::Instance &instance) {
    CHECK(instance.setting<Value>("points")[2].as<int>() == 3);
    refused_saying<titin::SettingError>("setting 'lowest': -2147483648 does not fit uint16 (0 to 65535): ask for a wider type",
                                        [&] { instance.setting<std::uint16_t>("lowest"); });
    refused_saying<titin::SettingError>("setting 'beyond': -2147483649 does not fit int32 (-2147483648 to 2147483647)",
                                        [&] { instance.setting<std::vector<int>>("beyond"); });
    refused_saying<titin::SettingError>("setting 'vast': 1e+300 does not fit float32 (up to 3.40282346638529e+38)",
                                        [&] { instance.setting<float>("vast"); });
    refused_saying<titin::SettingError>("setting 'vast': 1e+300 does not fit float32",
                                        [&] { instance.setting<float>("vast", Unit{"s"}); });
    refused_saying<titin::SettingError>("it is of type float (2.5); correct it", [&] { instance.setting<int>("half"); });
    refused_saying<titin::SettingError>("write 10000000000 in the description", [&] { instance.setting<int>("power"); });
    const Value all = instance.settings();
    CHECK(all.contains("solo.width") && !all.name(0).empty());
    CHECK(instance.overlay().size() == 0);
}

static void ports(const titin::Instance &instance) {
    CHECK(instance.ports().size() == 5);
    for (const titin::Port &port : instance.ports()) {
        CHECK(port.raw() == instance.port(port.name()).raw() && !port.is_connected());
        CHECK(port.op() == (port.name() == "start" ? titin::F_INIT : port.name() == "in" ? titin::S
                            : port.name() == "end" ? titin::O_F : titin::O_I));
    }
    titin::Port wide = instance.port("wide");
    CHECK(wide.is_vector() && !instance.port("out").is_vector());
    wide.set_slots(7);
    CHECK(wide.slots() == 7);
}

static void unconnected(titin::Instance &instance) {
    try {
        instance.receive("start");
        CHECK(!"a message from nobody");
    } catch (const titin::UsageError &) {
    }
    const titin::Message message = instance.receive_or("start", titin::Message(Value(1.5), 2.0));
    CHECK(message.timestamp() == 2.0 && !message.next_timestamp() && message.value().as<double>() == 1.5);
    instance.send("end", 1.5, 2.0);
    const float pair[2] = {1.0f, 2.0f};
    instance.send("out", pair, {2}, 2.0);
}

static void values() {
    const std::int32_t table[6] = {1, 2, 3, 4, 5, 6};
    const unsigned char bytes[3] = {1, 0, 255};
    Value all = Value::list({nullptr, std::numeric_limits<std::uint64_t>::max(), Value::bytes(bytes, 3)});
    all.append(Value::array(titin::Span(table, {3, 2}, titin::Order::Fortran)));
    const titin::Message message(Value::map({{"all", std::move(all)}, {"marked", Value::settings({{"k", 0.5f}})}}), 0.0, 1.0);
    CHECK(message.value()["marked"].is_settings() && message.value()["marked"]["k"].is_single());
    const titin::ValueView list = message.value()["all"];
    CHECK(message.next_timestamp() == 1.0 && message.kind() == titin::Kind::Map);
    const Value large(1e300);
    CHECK(large.as<double>() == 1e300);
    refused_saying<titin::TypeMismatch>("1e+300 does not fit float32 (up to 3.40282346638529e+38): ask for double",
                                        [&] { large.as<float>(); });
    refused_saying<titin::TypeMismatch>("the value is 16777217, a whole number that float32 does not have: its nearest is 16777216",
                                        [&] { Value(16777217).as<float>(); });
    CHECK(Value(16777216).as<float>() == 16777216.0f && Value(16777217.0).as<float>() == 16777216.0f);
    CHECK(Value(0.1).as<float>() == 0.1f);
    refused_saying<titin::TypeMismatch>("expected a list, the value is the real number 1.5",
                                        [&] { Value(1.5).as<std::vector<double>>(); });
    refused_saying<titin::TypeMismatch>("expected a list, the value is a map of 1",
                                        [&] { Value::map({{"a", 1}}).as<std::vector<double>>(); });
    refused_saying<titin::TypeMismatch>("read it with array<double>()",
                                        [&] { list[3].as<std::vector<double>>(); });
    refused_saying<titin::TypeMismatch>("found the real number 1.5: read it with as<double>()",
                                        [&] { Value(1.5).array<double>(); });
    refused_saying<titin::TypeMismatch>("found the whole number 1: read it with as<std::int64_t>()",
                                        [&] { Value(1).array<double>(); });
    refused_saying<titin::TypeMismatch>("300 does not fit int8 (-128 to 127): ask for a wider type",
                                        [&] { Value(300).as<std::int8_t>(); });
    refused_saying<titin::TypeMismatch>("-5 does not fit uint64 (0 to 18446744073709551615)",
                                        [&] { Value(-5).as<std::uint64_t>(); });
    refused_saying<titin::TypeMismatch>("18446744073709551615 does not fit int64 (-9223372036854775808 to 9223372036854775807)",
                                        [&] { list[1].as<std::int64_t>(); });
    refused_saying<titin::TypeMismatch>("expected a whole number, the value is the real number 2.5",
                                        [&] { Value(2.5).as<int>(); });
    refused_saying<titin::TypeMismatch>("expected a whole number, the value is the bool true", [&] { Value(true).as<char>(); });
    CHECK(list[0].is_nil() && list[1].as<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
    CHECK(list[2].bytes().size() == 3 && list[2].bytes()[2] == std::byte{255});
    const auto array = list[3].array<std::int32_t>();
    CHECK(array.rank() == 2 && array.extent(0) == 3 && array.order() == titin::Order::Fortran && array(2, 1) == 6);
    CHECK(list[3].index_name(0).empty());
    refused<titin::TypeMismatch>("an index too few", [&] { array(5); });
}

template <class Body>
static void was_moved_from(Body body) {
    try {
        body();
        CHECK(!"the use of what was moved from");
    } catch (const titin::UsageError &error) {
        CHECK(std::string(error.what()).find("was moved from") != std::string::npos);
    }
}

static void moved() {
    Value list = Value::list({1}), taken = std::move(list);
    was_moved_from([&] { list.append(2); });
    was_moved_from([&] { taken.append(std::move(list)); });
    titin::Message message(taken), kept = std::move(message);
    was_moved_from([&] { message.timestamp(); });
    was_moved_from([&] { message.value(); });
    CHECK(kept.value()[0].as<int>() == 1 && taken.size() == 1);
}

// Every second column of a flat container, and strides that would lead out of the container.
static void strides() {
    std::vector<double> flat{0, 1, 2, 10, 11, 12};
    const Value part = Value::array(titin::Span(flat, {2, 2}, {3, 2}));
    CHECK((part.array<double>().vector() == std::vector<double>{0, 2, 10, 12}));
    CHECK(Value::array(titin::Span(flat, {0, 9}, {9, 9})).array<double>().empty());
    refused<titin::UsageError>("too long a stride", [&] { titin::Span(flat, {2, 2}, {3, 3}); });
    refused<titin::UsageError>("a stride backwards", [&] { titin::Span(flat, {2}, {-1}); });
}

static void text() {
    CHECK(Value(std::string_view("text", 2)).as<std::string>() == "te");
    CHECK(Value(std::string_view()).kind() == titin::Kind::Text);
    static_assert(!titin::detail::IsArray<std::string_view>::value, "it is sent as text");
}

int main() {
    return guarded([&] {
        titin::Options options = titin::Options().instance("solo").unchecked("shows what it knows").checks(titin::Checks::Error).receive(titin::Receive::AllRanks);
        options.overlays(titin::Overlays::Inherited);
        options.manager(std::getenv("TITIN_MANAGER"));
        titin::Instance instance(
            {{titin::F_INIT, {"start"}}, {titin::O_I, {"out", "wide[]"}}, {titin::S, {"in"}}, {titin::O_F, {"end"}}},
            options);
        std::optional<titin::Region> late;
        instance.run([&] {
            known(instance);
            scales(instance);
            units(instance);
            settings(instance);
            ports(instance);
            unconnected(instance);
            values();
            moved();
            strides();
            text();
            late.emplace(instance.region("late"));
        });
        // The region ends after its instance.
        late.reset();
        refused<titin::UsageError>("a setting of a closed instance", [&] { instance.setting<double>("plain", 1.0); });
        refused<titin::UsageError>("ports of a closed instance", [&] { instance.ports(); });
    });
}
