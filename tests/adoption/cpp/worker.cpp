// Computes with the settings of its member.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::F_INIT, {"in"}}, {Operator::O_F, {"out"}}});
    while (instance.reuse_instance()) {
        const double k = instance.get_setting_as<double>("k");
        const std::string extra = instance.get_setting_as<std::string>("extra", std::string("none"));
        const Message message = instance.receive("in");
        record::line("k", k);
        record::line("in", message);
        instance.send("out", Message(message.timestamp(), Data::dict("member", message.data(), "square", k * k, "extra", extra)));
    }
}
