// Sends settings to the probe, and a message for each of its uses.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::O_I, {"settings", "out"}}, {Operator::S, {"done"}}});
    while (instance.reuse_instance())
        for (int use = 0; use < 2; ++use) {
            ymmsl::Settings settings;
            settings["float"] = 10.5 + use;
            settings["late"] = "came late";
            settings["probe.own"] = std::vector<std::int64_t>{use, 2};
            if (use == 1) settings["ints"] = {0.5, 1.5};
            instance.send("settings", Message(use, Data(settings)));
            instance.send("out", Message(use, Data(use), settings));
            record::line("done", instance.receive_with_settings("done"));
        }
}
