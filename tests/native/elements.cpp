// "left" sends three elements of every type, "right" reads them by every getter: elements.c, elements.f90 and
// elements.py follow the same script. For each type "left" sends an array, the array again, and a map with the array,
// the first element of the array, and a list of the elements.
#include "check.hpp"

#include <algorithm>
#include <array>

using titin::Value;

/// The elements of a type, which are the same in all languages.
template <class T>
static std::array<T, 3> sample() {
    if constexpr (std::is_same_v<T, bool>) return {true, false, true};
    else if constexpr (std::is_unsigned_v<T>) return {T(1), std::numeric_limits<T>::max(), T(3)};
    else if constexpr (std::is_integral_v<T>) return {T(1), std::numeric_limits<T>::min(), T(3)};
    else if constexpr (std::is_floating_point_v<T>) return {T(0.5), T(-1.5), T(3)};
    else if constexpr (std::is_same_v<T, titin::bfloat16>) return {T(0.5F), T(-1.5F), T(3.0F)};
    else return {T(0.5, -2), T(-1.5, 0), T(0, 3)};
}

template <class T>
inline constexpr bool is_number = titin::detail::is_number<T>;

template <class T>
static void send(titin::Instance &instance, double timestamp) {
    const auto elements = sample<T>();
    instance.send("out", elements, timestamp);
    auto loan = instance.loan<T>("out", {3});
    std::copy(elements.begin(), elements.end(), loan.begin());
    instance.send("out", std::move(loan), timestamp);
    Value map = Value::map({{"array", elements}});
    if constexpr (is_number<T>) {
        map.set("number", elements[0]);
        map.set("list", Value::list({elements[0], elements[1], elements[2]}));
    }
    instance.send("out", map, timestamp);
}

template <class View>
static void check(const View &view) {
    using T = typename View::value_type;
    const auto elements = sample<T>();
    const std::vector<T> expected(elements.begin(), elements.end());
    CHECK(view.size() == 3 && view.rank() == 1 && view.extent(0) == 3 && !view.empty());
    CHECK(view.vector() == expected);
    CHECK(std::equal(view.begin(), view.end(), elements.begin(), elements.end()));
    for (std::size_t i = 0; i < 3; ++i) CHECK(view[i] == elements[i] && view(i) == elements[i] && view.data()[i] == elements[i]);
}

template <class T>
static void receive(titin::Instance &instance, const titin::Message &first) {
    const auto elements = sample<T>();
    check(first.array<T>());
    check(first.value().array<T>());
    std::array<T, 3> into{};
    instance.receive_into("in", into);
    CHECK(into == elements);
    const titin::Message last = instance.receive("in");
    const titin::ValueView map = last.value();
    check(map["array"].array<T>());
    if constexpr (is_number<T>) {
        CHECK(map["number"].as<T>() == elements[0]);
        const auto list = map["list"].as<std::vector<T>>();
        CHECK(list.size() == 3 && std::equal(list.begin(), list.end(), elements.begin()));
    }
    // A value that was built here is read like a received value.
    check(Value::array(elements).template array<T>());
}

/// Calls with a value of each type.
template <class... T, class Call>
static void each(Call &&call) {
    (call(T()), ...);
}

template <class Call>
static void of_every_type(Call &&call) {
    each<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
         std::uint64_t, float, double, std::complex<float>, std::complex<double>, titin::bfloat16>(call);
}

int main(int argc, char **argv) {
    return guarded([&] {
        CHECK(argc == 2);
        titin::Instance instance({{titin::O_I, {"out"}}, {titin::S, {"in"}}});
        instance.run([&] {
            if (argv[1] == std::string("left")) {
                of_every_type([&](auto type) { send<decltype(type)>(instance, 0.0); });
                instance.send_nil("out", 0.0);
                return;
            }
            int known = 0;
            for (titin::Message first = instance.receive("in"); !first.is_nil(); first = instance.receive("in")) {
                const int dtype = titin_message_dtype(first.raw());
                of_every_type([&](auto type) {
                    if (dtype != titin::detail::dtype<decltype(type)>()) return;
                    receive<decltype(type)>(instance, first);
                    ++known;
                });
                // C++ has no type for float16.
                if (dtype == TITIN_F16) instance.receive("in"), instance.receive("in");
            }
            CHECK(known >= 9);
        });
    });
}
