// Sends a few arrays, and receives two answers for each.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::O_I, {"out"}}, {Operator::S, {"in"}}});
    while (instance.reuse_instance())
        for (int i = 0; i < 3; ++i) {
            const std::vector<double> values(4, i + 0.5);
            ymmsl::Settings settings;
            settings["k"] = 0.5 * i;
            instance.send("out", Message(i, Data::grid(values.data(), {4}, {"x"}), settings));
            record::line("in", instance.receive_with_settings("in"));
            record::line("in", instance.receive_with_settings("in"));
        }
}
