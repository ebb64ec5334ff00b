// The frame for submodels: the functions that it calls, and their order.
#include "check.hpp"

/// Notes the called functions.
struct Frame : titin::Submodel {
    using Submodel::Submodel;
    std::string called;

    void init() override { called += "init"; }
    void observe() override { called += " observe " + std::to_string(int(time)); }
    void solve() override {
        called += " solve";
        time += 1.0;
    }
    void finish() override { called += " finish " + std::to_string(int(time)); }
};

struct Until : Frame {
    using Frame::Frame;
    bool stops() override { return time >= 1.0; }
};

struct Still : Frame {
    using Frame::Frame;
    void solve() override {}
};

static titin::Options named(const char *name) { return titin::Options().instance(name); }

int main() {
    return guarded([] {
        Frame frame({}, named("frame[0]"));
        frame.run();
        CHECK(frame.called == "init observe 0 solve observe 1 solve finish 2");
        Until until({}, named("frame[1]"));
        until.run();
        CHECK(until.called == "init observe 0 solve finish 1");
        Still still({}, named("frame[2]"));
        refused_saying<titin::UsageError>("solve() has left the time at 0.0", [&] { still.run(); });
    });
}
