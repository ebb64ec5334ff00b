// A micro model whose caller sends settings: the script of called.c.
#include <array>

#include "check.hpp"

template <class Call>
static void refused(Call &&call, const char *why) {
    try {
        call();
    } catch (const titin::UsageError &error) {
        CHECK(std::string(error.what()).find(why) != std::string::npos);
        return;
    }
    CHECK(!"an error");
}

int main() {
    return guarded([] {
        refused([] { titin::Options().unchecked(""); }, "say why");

        titin::Instance instance({{titin::F_INIT, {"in"}}, {titin::O_F, {"out"}}});
        refused([&] { instance.skip_checks(" "); }, "say why");
        CHECK(instance.ports().size() == 2);
        refused([&] { instance.port("muscle_settings_in"); }, "reuse()");
        while (instance.reuse()) {
            instance.receive("in");
            const std::array answer{instance.setting<double>("k"), static_cast<double>(instance.overlay().size())};
            instance.send("out", answer, 0.0);
        }
        instance.close();
    });
}
