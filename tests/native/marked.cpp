// A program that reads and builds marked data: the script of marked.c.
#include "check.hpp"

namespace {

void read(titin::ValueView data) {
    const titin::ValueView settings = data["settings"];
    CHECK(data["single"].is_single() && !data["double"].is_single() && !data["map"].is_single());
    CHECK(data["single"].as<float>() == 0.1f && data["single"].as<double>() == double(0.1f));
    CHECK(settings.is_settings() && !data["map"].is_settings() && settings.kind() == titin::Kind::Map);
    CHECK(settings.size() == 2 && settings.name(1) == "a.b" && settings["k"].as<double>() == 2.5);
}

} // namespace

int main() {
    return guarded([] {
        titin::Instance instance({{titin::F_INIT, {"in"}}, {titin::O_F, {"passed", "own"}}});
        while (instance.reuse()) {
            const titin::Message message = instance.receive("in");
            read(message.value());
            instance.send("passed", message.value(), 0.0);
            instance.send("own", titin::Value::map({{"single", 0.1f}, {"settings", titin::Value::settings({{"k", 7.5}})}}), 0.0);
        }
        instance.close();
    });
}
