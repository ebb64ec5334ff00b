// Leaves the order of the execution loop: sends before it receives, and does not take the messages of its uses.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::InstanceFlags;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    const bool skips = argc > 1 && std::string(argv[1]) == "skip";
    libmuscle::Instance instance(argc, argv, {{Operator::F_INIT, {"in"}}, {Operator::O_F, {"out"}}},
                                 skips ? InstanceFlags::SKIP_MMSF_SEQUENCE_CHECKS : InstanceFlags::NONE);
    int uses = 0;
    while (instance.reuse_instance()) {
        instance.send("out", Message(0.0, Data(uses)));
        if (uses++ % 2) record::line("in", instance.receive("in"));
    }
    record::line("uses", std::int64_t(uses));
}
