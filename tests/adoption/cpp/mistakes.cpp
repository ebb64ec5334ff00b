// Calls that are refused: with their class and text. The instance goes on after each.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Instance;
using libmuscle::InstanceFlags;
using libmuscle::Message;
using record::refused_with;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    Instance instance(argc, argv,
                      {{Operator::F_INIT, {"in", "lonely"}}, {Operator::O_I, {"out", "many[]"}}, {Operator::S, {"back", "absent"}}});
    const Message message(0.0, Data(1));
    int uses = 0;
    while (instance.reuse_instance()) {
        ++uses;
        refused_with("send on an unknown port", [&] { instance.send("unknown", message); });
        refused_with("send on a port that receives", [&] { instance.send("in", message); });
        refused_with("receive on a port that sends", [&] { instance.receive("out"); });
        refused_with("a slot without slots", [&] { instance.send("out", message, 0); });
        refused_with("no slot", [&] { instance.send("many", message); });
        refused_with("a slot too far", [&] { instance.send("many", message, 2); });
        refused_with("a slot below 0", [&] { instance.send("many", message, -1); });
        refused_with("F_INIT not connected", [&] { instance.receive("lonely"); });
        refused_with("S not connected", [&] { instance.receive("absent"); });
        refused_with("with settings", [&] { instance.receive_with_settings("in"); });
        if (uses == 1) {
            record::line("in", instance.receive("in"));
            refused_with("twice", [&] { instance.receive("in"); });
        }
        refused_with("resized", [&] { instance.set_port_length("many", 3); });
        refused_with("a checkpoint without the flag", [&] { instance.resuming(); });
        refused_with("a setting that is missing", [&] { instance.get_setting("none"); });
        refused_with("a setting of another type", [&] { instance.get_setting_as<double>("word"); });
        Data loop = Data::list(1);
        loop[0] = loop;
        refused_with("a list in itself", [&] { instance.send("out", Message(0.0, loop)); });
        const Data half = Data::dict(std::string("a\0b", 3), 1, "a", 2);
        refused_with("a key with a NUL", [&] { instance.send("out", Message(0.0, half)); });
        instance.send("out", message);
        record::line("back", instance.receive("back"));
    }
    refused_with("after the end", [&] { instance.send("out", message); });
    record::line("setting after the end", record::show(instance.get_setting("word")));
    record::line("port after the end", instance.is_connected("in"));
    record::line("uses", std::int64_t(uses));
}
