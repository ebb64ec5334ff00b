// Asks everything about settings and ports, in each use.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Instance;
using libmuscle::Message;
using record::line;
using record::refused;
using ymmsl::Operator;

static void ports(Instance &instance) {
    std::map<std::string, std::string> listed;
    for (const auto &found : instance.list_ports()) {
        std::vector<std::string> names = found.second;
        std::sort(names.begin(), names.end());
        for (const std::string &name : names) listed[ymmsl::operator_name(found.first)] += " " + name;
    }
    line("ports", record::show(listed));
    for (const char *port : {"in", "lonely", "many", "out", "spread", "back", "absent"}) {
        const std::string name = port;
        line(name + " connected", instance.is_connected(name));
        line(name + " vector", instance.is_vector_port(name));
        line(name + " resizable", instance.is_resizable(name));
        if (instance.is_vector_port(name)) line(name + " length", std::int64_t(instance.get_port_length(name)));
        else refused(name + " length", [&] { instance.get_port_length(name); });
    }
    for (const char *port : {"spread", "in"}) refused(std::string(port) + " resized", [&] { instance.set_port_length(port, 5); });
    refused("unknown connected", [&] { instance.is_connected("unknown"); });
    refused("unknown length", [&] { instance.get_port_length("unknown"); });
}

template <class T>
static void as(Instance &instance, const std::string &name, const char *type, const T &other) {
    const std::string what = name + " as " + type;
    refused(what, [&] { line(what, instance.get_setting_as<T>(name)); });
    refused(what + " or default", [&] { line(what, instance.get_setting_as<T>(name, other)); });
}

static void settings(Instance &instance) {
    std::string names;
    for (const std::string &name : instance.list_settings()) names += " " + name;
    line("settings", names);
    for (const char *setting : {"text", "int", "float", "flag", "ints", "floats", "table", "own", "none", "late", "deep.name"}) {
        const std::string name = setting;
        refused(name + " read", [&] { line(name, record::show(instance.get_setting(name))); });
        line(name + " or default", record::show(instance.get_setting(name, ymmsl::SettingValue("default"))));
        as<std::string>(instance, name, "str", "other");
        as<std::int64_t>(instance, name, "int", 7);
        as<double>(instance, name, "float", 0.25);
        as<bool>(instance, name, "bool", true);
        as<std::vector<std::int64_t>>(instance, name, "[int]", {1, 2});
        as<std::vector<double>>(instance, name, "[float]", {0.5});
        as<std::vector<std::vector<double>>>(instance, name, "[[float]]", {{0.5}, {1.5}});
    }
}

int main(int argc, char *argv[]) {
    Instance instance(argc, argv,
                      {{Operator::F_INIT, {"in", "lonely", "many[]"}},
                       {Operator::O_I, {"out", "spread[]"}},
                       {Operator::S, {"back", "absent"}},
                       {Operator::O_F, {"done"}}});
    while (instance.reuse_instance()) {
        ports(instance);
        settings(instance);
        line("in", instance.receive("in"));
        line("lonely", instance.receive("lonely", Message(1.5, 2.5, Data("default"))));
        line("many 0", instance.receive("many", 0, Message(0.5, Data("default"))));
        for (int slot = 0; slot < instance.get_port_length("spread"); ++slot)
            instance.send("spread", Message(0.0, Data::list(slot)), slot);
        instance.send("out", Message(0.0, "not connected"));
        line("back", instance.receive("back", Message(4.5, Data())));
        line("absent", instance.receive("absent", Message(3.5, Data::list(1))));
        instance.send("done", Message(1.0, "done"));
    }
}
