// Two instances on threads of one process: the script of hosted.c.
#include <cmath>
#include <cstdlib>

#include "check.hpp"

constexpr int slots = 3;

// How the receiver fails: "return" (by an exception) or "say" an error. Empty: the receiver does not fail.
static std::string how;

static void sender(titin::Instance &instance) {
    CHECK(instance.name() == "sender" && instance.reuse());
    CHECK(std::abs(instance.setting<double>("dt", titin::Unit{"ms"}) - 500.0) < 1e-12);
    titin::Port wide = instance.port("wide");
    CHECK(wide.is_vector() && wide.is_resizable());
    wide.set_slots(slots);
    CHECK(wide.slots() == slots);
    try {
        instance.send_nil({wide, slots}, 0.0);
        CHECK(!"a slot that is not there");
    } catch (const titin::UsageError &) {
    }
    for (int slot = 0; slot < slots; ++slot) instance.send_nil({wide, slot}, slot);
    const auto region = instance.region("send");
    instance.send("out", std::vector<double>{1.5, 2.5}, 1.0);
    instance.log(TITIN_LOG_INFO, "all is sent");
    CHECK(!instance.reuse());
    try {
        instance.close();
        CHECK(!"an instance of the host is closed");
    } catch (const titin::UsageError &) {
    }
}

static void receiver(titin::Instance &instance) {
    CHECK(instance.reuse());
    if (how == "say") return instance.fail("the ice is too thin");
    if (how == "return") throw std::runtime_error("the ice is too thin");
    for (int slot = slots - 1; slot >= 0; --slot) {
        const titin::Message message = instance.receive({"wide", slot});
        CHECK(message.timestamp() == 10.0 + slot && !message.next_timestamp());
        CHECK(message.value().as<std::string>() == "late");
    }
    double values[2];
    instance.receive_into("in", values);
    CHECK(values[0] == 3.0 && values[1] == 5.0);
    try {
        instance.receive_any({"in", "wide"});
        CHECK(!"a message that nobody sent");
    } catch (const titin::PortClosed &) {
    }
}

int main(int argc, char **argv) {
    if (argc > 1) how = argv[1];
    return guarded([&] {
        // The options are used for both instances, and only the options name the run.
        titin::Options options;
        options.manager(std::getenv("TITIN_MANAGER")).on_interrupt([] { return false; });
        unsetenv("TITIN_MANAGER");
        titin::host({{"sender", "o_i: out wide[]", sender}, {"receiver", "s: in wide[]", receiver}}, options);
        std::cout << "both are done\n";
    });
}
