// A macro model of MUSCLE 2's manual: sends its state and receives it back until the time is over.
#include <cstdio>
#include <muscle2/cppmuscle.hpp>

int main(int argc, char **argv) {
    muscle::env::init(&argc, &argv);
    std::printf("%s main=%d name=%s\n", muscle::cxa::kernel_name().c_str(), muscle::env::is_main_processor,
                muscle::env::kernel_name.c_str());
    const char *const names[] = {"dt", "label", "macro:dt", "max_timesteps", "flag", "third", "listed"};
    for (int i = 0; i < 7; ++i) std::printf("%s=%s\n", names[i], muscle::cxa::get_property(names[i]).c_str());
    std::printf("has only=%d dt=%d\n", muscle::cxa::has_property("only"), muscle::cxa::has_property("dt"));
    std::printf("all: %d\n", muscle::cxa::get_properties().find("macro:dt=0.5\n") != std::string::npos);
    std::vector<double> state(5, 1.0);
    for (int step = 0; !muscle::env::will_stop(); ++step) {
        muscle::env::sendDoubleVector("out", state);
        state = muscle::env::receiveDoubleVector("in");
        std::printf("step %d: %.17g\n", step, state[4]);
    }
    muscle::logger::info("the %s is over after %d values", "run", static_cast<int>(state.size()));
    muscle::logger::warning("a warning");
    muscle::env::finalize();
}
