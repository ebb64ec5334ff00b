// Sends four numbers.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::O_I, {"out"}}});
    while (instance.reuse_instance()) {
        double t = 0.0;
        for (const int number : {2, 4, 1, 3}) instance.send("out", Message(t += 0.5, Data(number)));
    }
    record::line("sent", std::int64_t(4));
}
