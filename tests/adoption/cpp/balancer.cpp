// Passes the messages of members on to workers, each with its settings.
#include "record.hpp"

using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv,
                                 {{Operator::F_INIT, {"front_in[]"}},
                                  {Operator::O_I, {"back_out[]"}},
                                  {Operator::S, {"back_in[]"}},
                                  {Operator::O_F, {"front_out[]"}}},
                                 libmuscle::InstanceFlags::DONT_APPLY_OVERLAY);
    while (instance.reuse_instance()) {
        const int calls = instance.get_port_length("front_in");
        record::line("calls", std::int64_t(calls));
        record::line("workers", std::int64_t(instance.get_port_length("back_out")));
        instance.set_port_length("front_out", calls);
        std::vector<Message> answers;
        for (int call = 0; call < calls; ++call) {
            const Message message = instance.receive_with_settings("front_in", call);
            record::line("call " + std::to_string(call), message);
            instance.send("back_out", message, call);
        }
        for (int call = 0; call < calls; ++call) answers.push_back(instance.receive_with_settings("back_in", call));
        for (int call = 0; call < calls; ++call) {
            record::line("answer " + std::to_string(call), answers[static_cast<std::size_t>(call)]);
            instance.send("front_out", answers[static_cast<std::size_t>(call)], call);
        }
    }
}
