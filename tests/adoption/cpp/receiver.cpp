// Writes down what comes to each slot of a component with several instances, or of a vector port of changing length.
#include "record.hpp"

using ymmsl::Operator;

int main(int argc, char *argv[]) {
    const bool vector = argc > 1 && std::string(argv[1]) == "vector";
    const std::string port = vector ? "in[]" : "in";
    libmuscle::Instance instance(argc, argv, {{Operator::F_INIT, {port}}});
    while (instance.reuse_instance()) {
        if (!vector) {
            record::line("in", instance.receive("in"));
            continue;
        }
        const int length = instance.get_port_length("in");
        record::line("length", std::int64_t(length));
        for (int slot = length - 1; slot >= 0; --slot) record::line("slot " + std::to_string(slot), instance.receive("in", slot));
    }
}
