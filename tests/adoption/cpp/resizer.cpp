// Sends as many messages as it is told, on a vector port whose length changes with each use.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::F_INIT, {"in"}}, {Operator::O_F, {"out[]"}}});
    while (instance.reuse_instance()) {
        const Message message = instance.receive("in");
        const int length = message.data().as<int>();
        record::line("resizable", instance.is_resizable("out"));
        record::line("before", std::int64_t(instance.get_port_length("out")));
        instance.set_port_length("out", length);
        record::line("after", std::int64_t(instance.get_port_length("out")));
        for (int slot = 0; slot < length; ++slot)
            instance.send("out", Message(message.timestamp(), Data(10 * length + slot)), slot);
    }
}
