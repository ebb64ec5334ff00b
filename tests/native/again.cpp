// Drives the ensemble of test_members.py whose members are started again: the script of again.c.
#include "check.hpp"

static int failures = 0;

static double answer(titin::Instance &instance, int slot, double value) {
    for (;;) {
        try {
            instance.send({"out", slot}, value, value);
            return instance.receive({"back", slot}).value().as<double>();
        } catch (const titin::MemberFailed &error) {
            CHECK(error.slot() == slot);
            CHECK(std::string(error.what()).find("it is started again") != std::string::npos);
            ++failures;
        }
    }
}

int main() {
    return guarded([] {
        titin::Instance instance("o_i: out[]; s: back[]");
        while (instance.reuse()) {
            for (int step = 0; step < 4; ++step)
                for (int slot = 0; slot < 2; ++slot) CHECK(answer(instance, slot, step) == 2.0 * step);
        }
        CHECK(failures == 4);
        instance.close();
    });
}
