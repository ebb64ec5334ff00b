// Functions that one program runs as instances, on threads of their own or as light steps: the script of hosts.c.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "titin.hpp"

static std::string how;

static void fail(const std::string &when = "") {
    if (how == when + "exception") throw std::runtime_error("the mesh is tangled");
    if (how == when + "exit") _exit(3);
    if (how == when + "exit0") _exit(0);
    if (how == when + "abort") std::abort();
    if (how == when + "kill") std::raise(SIGKILL);
}

// The next call to make. A step makes a pending call again, so the progress of the instance must outlive the step.
enum class Next { reuse, send, receive };

struct Culprit {
    Next next = Next::reuse;
    int number = 0;

    void operator()(titin::Instance &instance) {
        for (;;) switch (next) {
        case Next::reuse:
            if (!instance.reuse()) return;
            number = 0;
            next = Next::send;
            break;
        case Next::send:
            instance.send_nil("out", number);
            next = Next::receive;
            break;
        case Next::receive:
            instance.receive("in");
            if (number == 2) fail();
            next = ++number < 5 ? Next::send : Next::reuse;
            break;
        }
    }
};

struct Guest {
    Next next = Next::reuse;

    void operator()(titin::Instance &instance) {
        for (;;) {
            if (next == Next::reuse && !instance.reuse()) return;
            next = Next::receive;
            instance.receive("in");
            next = Next::reuse;
        }
    }
};

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    how = argv[3];
    fail("before-");
    if (how == "never") return 0;
    std::vector<titin::Guest> guests{{"culprit", "o_i: out; s: in", Culprit{}}, {"guest", "f_init: in", Guest{}}};
    guests.resize(std::stoul(argv[2]));
    try {
        std::string(argv[1]) == "steps" ? titin::host_steps(guests, 2) : titin::host(guests);
    } catch (const std::exception &error) {
        std::cerr << "hosts: " << error.what() << '\n';
        return 1;
    }
    fail("after-");
}
