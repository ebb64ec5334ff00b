// A signal while a receive waits: the script of interrupted.c.
#include <csignal>
#include <fstream>

#include "check.hpp"

static volatile std::sig_atomic_t came;

static void caller(titin::Instance &instance) {
    int questions = 0;
    instance.on_interrupt([&questions] {
        ++questions;
        return came != 0;
    });
    try {
        instance.on_interrupt([] { return false; });
        CHECK(!"a second callback");
    } catch (const titin::UsageError &) {
    }
    // The callback moves with the instance.
    titin::Instance moved(std::move(instance));
    CHECK(std::signal(SIGUSR1, [](int) { came = 1; }) != SIG_ERR);
    std::ofstream("waiting");
    try {
        moved.receive("in");
        CHECK(!"a message that nobody sent");
    } catch (const titin::Interrupted &) {
    }
    CHECK(came && questions > 0);
    came = 0;
    moved.send("out", nullptr, 0.0);
    CHECK(moved.receive("in").is_nil());
    instance = std::move(moved);
}

static void newcomer() {
    int questions = 0;
    CHECK(std::signal(SIGUSR1, [](int) { came = 1; }) != SIG_ERR);
    std::ofstream("waiting");
    try {
        titin::Instance instance(nullptr, titin::Options().on_interrupt([&questions] {
            ++questions;
            // An exception does not pass through the library. It counts as an interruption.
            return came ? throw std::runtime_error("a signal") : false;
        }));
        CHECK(!"a manager that answers");
    } catch (const titin::Interrupted &) {
    }
    CHECK(came && questions > 0);
}

int main(int argc, char **argv) {
    return guarded([&] {
        CHECK(argc == 2);
        if (argv[1] == std::string("newcomer")) return newcomer();
        titin::Instance instance(nullptr);
        instance.run([&] {
            if (argv[1] == std::string("caller")) caller(instance);
            else instance.send("out", (instance.receive("in"), nullptr), 0.0);
        });
    });
}
