// Drives the ensemble of test_members.py, of which the member at slot 1 fails: the script of members.c.
#include "check.hpp"

template <class Call>
static void failed(Call &&call) {
    try {
        call();
    } catch (const titin::MemberFailed &error) {
        CHECK(error.member() == "micro[1]" && error.slot() == 1 && error.kind() == TITIN_ERROR_MEMBER_FAILED);
        const std::string text = error.what();
        CHECK(text.find("member micro[1] has failed: it ended with exit code 3") != text.npos);
        return;
    }
    throw std::runtime_error("the failed member is not told");
}

static void drive(titin::Instance &instance, int slots) {
    for (int slot = 0; slot < slots; ++slot) instance.send({"out", slot}, 1.0, 0.0);
    for (int slot = 0; slot < slots; ++slot) {
        if (slot == 1) failed([&] { instance.receive({"back", slot}); });
        else CHECK(instance.receive({"back", slot}).timestamp() == 0.0);
    }
    for (int slot = 0; slot < slots; ++slot) {
        if (slot == 1) failed([&] { instance.send({"out", slot}, 2.0, 1.0); });
        else instance.send({"out", slot}, 2.0, 1.0);
    }
    for (int answers = 0, told = 0; answers < slots - 1;) {
        try {
            instance.receive_any({"back"});
            ++answers;
        } catch (const titin::MemberFailed &error) {
            CHECK(error.slot() == 1 && ++told == 1);
        }
    }
}

int main() {
    return guarded([] {
        titin::Instance instance("o_i: out[]; s: back[]");
        while (instance.reuse()) drive(instance, 4);
        instance.close();
    });
}
