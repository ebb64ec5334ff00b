// Sends data of every kind on `out`, and writes down what comes back on `in`.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using libmuscle::StorageOrder;
using ymmsl::Operator;

static std::vector<Data> values() {
    const bool flags[] = {true, false, false, true, true, false};
    const std::int32_t small[] = {1, -2, 3, -4, 5, -6};
    const std::int64_t large[] = {1, -2, 1LL << 62, -4, 5, -6};
    const float singles[] = {0.5f, 1e-30f, -0.0f, 3.25f, 7.f, 1.f / 3};
    const double reals[] = {0.1, 1e-300, -0.0, 3.25, 1e300, 1.0 / 3};
    ymmsl::Settings settings;
    settings["a"] = 1;
    settings["b.c"] = {0.5, 1.5};
    settings["d"] = "text";
    settings["e"] = true;
    Data changed = Data::dict("keep", 1, "change", "old");
    changed["change"] = Data::list(1.5, Data::nils(2));
    changed["add"] = Data::dict();
    Data bytes = Data::byte_array(4);
    for (int i = 0; i < 4; ++i) bytes.as_byte_array()[i] = static_cast<char>(i * 60);
    return {Data(), true, false, 0, -7, 1LL << 40, 18446744073709551615ULL, 0.1, -1e-320, "", "text with \xC3\xA9", bytes,
            Data::byte_array(0), Data::list(), Data::list(1, "two", 3.0, Data(), true), Data::dict(),
            Data::dict("x", 1.5, "inner", Data::dict("list", Data::list(1, 2))), changed, settings,
            Data::grid(flags, {6}), Data::grid(small, {2, 3}, {"y", "x"}), Data::grid(large, {3, 2}, {}, StorageOrder::first_adjacent),
            Data::grid(singles, {1, 2, 3}, {"a", "b", "c"}), Data::grid(reals, {2, 3}, {"y", "x"}, StorageOrder::first_adjacent),
            Data::grid(reals, {0}, {"none"}), Data::dict("u", Data::grid(reals, {6}, {"x"}), "n", 6)};
}

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::O_I, {"out"}}, {Operator::S, {"in"}}});
    while (instance.reuse_instance()) {
        const std::vector<Data> all = values();
        for (std::size_t i = 0; i < all.size(); ++i) {
            const double t = 0.1 * static_cast<double>(i);
            if (i + 1 < all.size()) instance.send("out", Message(t, t + 0.1, all[i]));
            else instance.send("out", Message(t, all[i]));
            record::line("back " + std::to_string(i), instance.receive("in"));
        }
    }
}
