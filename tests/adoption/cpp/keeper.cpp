// Makes the calls of checkpoints, in their order and out of it.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using record::line;
using record::refused;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::F_INIT, {"in"}}, {Operator::O_F, {"out"}}},
                                 libmuscle::InstanceFlags::USES_CHECKPOINT_API |
                                     libmuscle::InstanceFlags::STATE_NOT_REQUIRED_FOR_NEXT_USE);
    refused("resuming too early", [&] { instance.resuming(); });
    int uses = 0;
    while (instance.reuse_instance()) {
        refused("should_init too early", [&] { instance.should_init(); });
        refused("should_save too early", [&] { instance.should_save_snapshot(0.0); });
        line("resuming", instance.resuming());
        refused("resuming twice", [&] { instance.resuming(); });
        refused("load", [&] { instance.load_snapshot(); });
        line("should_init", instance.should_init());
        const Message message = instance.receive("in");
        line("in", message);
        line("should_save", instance.should_save_snapshot(message.timestamp()));
        refused("save", [&] { instance.save_snapshot(Message(0.0, Data())); });
        refused("reuse too early", [&] { instance.reuse_instance(); });
        instance.send("out", Message(message.timestamp(), Data(uses++)));
        line("should_save_final", instance.should_save_final_snapshot());
        refused("save_final", [&] { instance.save_final_snapshot(Message(0.0, Data())); });
        refused("should_save too late", [&] { instance.should_save_snapshot(0.0); });
    }
    refused("resuming too late", [&] { instance.resuming(); });
    line("uses", std::int64_t(uses));
}
