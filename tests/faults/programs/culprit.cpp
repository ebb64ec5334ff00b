// Exchanges messages for a few steps and then fails in the way that the argument says.
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "titin.hpp"

static void fail(const std::string &how) {
    if (how == "exception") throw std::runtime_error("the mesh is tangled");
    if (how == "exit") _exit(3);
    if (how == "exit0") _exit(0);
    if (how == "abort") std::abort();
    if (how == "kill") std::raise(SIGKILL);
}

static void take_part(const std::string &how) {
    const std::string out = how == "misspelt" ? "outt" : "out";
    titin::Instance instance({{titin::O_I, {out}}, {titin::S, {"in"}}});
    while (instance.reuse()) {
        for (int step = 0; step < 5; step++) {
            instance.send(out, nullptr, step);
            instance.receive("in");
            if (step == 2) fail(how);
        }
    }
    instance.close();
}

int main(int argc, char **argv) {
    const std::string how = argc > 1 ? argv[1] : "";
    if (how.rfind("before-", 0) == 0) fail(how.substr(7));
    if (how == "never") return 0;
    try {
        take_part(how);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "culprit: %s\n", error.what());
        return 1;
    }
    if (how.rfind("after-", 0) == 0) fail(how.substr(6));
    return 0;
}
