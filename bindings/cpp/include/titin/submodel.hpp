// A frame for submodels: the submodel execution loop over four functions of the program.
#ifndef TITIN_SUBMODEL_HPP
#define TITIN_SUBMODEL_HPP

#include <string>

#include "titin/instance.hpp"

namespace titin {

/// A submodel with a virtual function for each operator; run() calls them in the order of the submodel execution loop:
///     struct Reaction : titin::Submodel {
///         Reaction() : Submodel({{titin::F_INIT, {"initial"}}, {titin::O_F, {"final"}}}) {}
///         void init() override { ... time = message.timestamp(); }
///         void solve() override { ... time += dt; }
///         void finish() override { instance.send("final", u, time); }
///     };
///     int main() { Reaction().run(); }
/// The class is only this loop over an Instance:
///     while (instance.reuse()) {
///         init();
///         while (!stops()) { observe(); solve(); }
///         finish();
///     }
class Submodel {
public:
    /// Opens the instance. Without an argument the ports are those of the description.
    explicit Submodel(const Ports &ports = {}, const Options &options = Options()) : instance(ports, options) {}
    Submodel(const Submodel &) = delete;
    Submodel &operator=(const Submodel &) = delete;
    virtual ~Submodel() = default;

    /// Runs all uses, and closes the instance.
    void run() {
        instance.run([this] {
            time = 0.0;
            init();
            while (!stops()) {
                const double begin = time;
                observe();
                solve();
                if (by_time_ && !(time > begin))
                    throw UsageError("solve() has left the time at " + std::to_string(time) +
                                     ", so the steps would never end: add the timestep to `time` there, or say in a stops() "
                                     "when they do");
            }
            finish();
        });
    }

protected:
    /// F_INIT: receives the initial state of a use, and sets `time`.
    virtual void init() {}
    /// O_I: sends an intermediate observation, at the beginning of each step.
    virtual void observe() {}
    /// S: receives, and moves the state and `time` on by a step.
    virtual void solve() {}
    /// O_F: sends the final observation of a use.
    virtual void finish() {}
    /// Whether the steps of a use are done: by the settings or scales, see Instance::will_stop.
    virtual bool stops() {
        by_time_ = true;
        return instance.will_stop(time);
    }

    Instance instance;
    /// Simulated time of the state: 0 where a use begins, unless init sets the time; solve moves the time on.
    double time = 0.0;

private:
    /// Whether stops() is the default function, which ends the steps by the simulated time.
    bool by_time_ = false;
};

} // namespace titin

#endif
