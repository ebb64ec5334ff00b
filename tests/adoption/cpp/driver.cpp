// Sends members with their settings to a balancer, and writes down what comes back.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::O_I, {"out[]"}}, {Operator::S, {"in[]"}}},
                                 libmuscle::InstanceFlags::DONT_APPLY_OVERLAY);
    while (instance.reuse_instance())
        for (int round = 0; round < 3; ++round) {
            const int members = 2;
            instance.set_port_length("out", members);
            for (int member = 0; member < members; ++member) {
                ymmsl::Settings settings;
                settings["k"] = 0.1 * (10 * round + member);
                if (member == 1) settings["extra"] = "only here";
                instance.send("out", Message(round, Data(member), settings), member);
            }
            for (int member = 0; member < members; ++member)
                record::line("back " + std::to_string(member), instance.receive_with_settings("in", member));
        }
}
