// A program that passes on the settings of a member: the script of passing.c.
#include <array>

#include "check.hpp"

int main() {
    return guarded([] {
        titin::Options options = titin::Options().overlays(titin::Overlays::Inherited).overlays(titin::Overlays::Explicit);
        titin::Instance instance({{titin::F_INIT, {"one", "two"}}, {titin::O_F, {"passed", "plain"}}}, options);
        while (instance.reuse()) {
            const titin::Message first = instance.receive("one"), second = instance.receive("two");
            const std::array answer{instance.setting<double>("k"), static_cast<double>(instance.overlay().size())};
            instance.send_nil("passed", 0.0, titin::no_next, second.settings());
            instance.send("plain", answer, 0.0);
        }
        instance.close();
    });
}
