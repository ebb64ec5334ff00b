// Writes down each message, and sends its data back.
#include "record.hpp"

using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::F_INIT, {"in"}}, {Operator::O_F, {"out"}}});
    int uses = 0;
    while (instance.reuse_instance()) {
        Message message = instance.receive("in");
        record::line("use " + std::to_string(uses++), message);
        message.unset_next_timestamp();
        instance.send("out", message);
    }
    record::line("uses", std::int64_t(uses));
}
