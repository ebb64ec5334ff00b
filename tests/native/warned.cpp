// A program whose calls out of order only make warnings: the script of warned.c.
#include "check.hpp"

int main() {
    return guarded([] {
        titin::Options options = titin::Options().checks(titin::Checks::Error).checks(titin::Checks::Warn);
        titin::Instance instance({{titin::F_INIT, {"one", "two"}}, {titin::O_F, {"early", "out"}}}, options);
        for (int use = 0; instance.reuse(); ++use) {
            double number = 0.0;
            instance.send("early", number, 0.0);
            if (use == 1) number = instance.receive("two").value().as<double>();
            instance.receive("one");
            instance.send("out", number, 0.0);
        }
        instance.close();
    });
}
