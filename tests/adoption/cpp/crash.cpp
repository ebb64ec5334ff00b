// Ends in the way that its argument names.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Instance;
using libmuscle::Message;
using ymmsl::Operator;

static void use(int argc, char *argv[], const std::string &way) {
    Instance instance(argc, argv, {{Operator::F_INIT, {"in"}}, {Operator::O_F, {"out"}}});
    while (instance.reuse_instance()) {
        if (way == "shutdown") {
            instance.error_shutdown("the state has become negative");
            return;
        }
        if (way == "unknown") instance.receive("unknown");
        if (way == "own") throw std::runtime_error("an error of the program");
        if (way == "exit") std::exit(3);
        instance.send("out", instance.receive("in"));
        if (way == "leave") return;
    }
}

int main(int argc, char *argv[]) {
    try {
        use(argc, argv, argc > 1 ? argv[1] : "");
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
