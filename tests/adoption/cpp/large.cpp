// Sends grids that are large enough for memory lent by titin, again and changed, and checks what comes back.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::DataConstRef;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    libmuscle::Instance instance(argc, argv, {{Operator::O_I, {"out"}}, {Operator::S, {"in"}}});
    while (instance.reuse_instance()) {
        std::vector<double> values(100000);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / static_cast<double>(i + 1);
        const Data grid = Data::grid(values.data(), {400, 250}, {"y", "x"});
        const std::vector<double> kept = values;
        values.assign(values.size(), -1.0);
        std::vector<DataConstRef> received;
        for (int i = 0; i < 3; ++i) {
            instance.send("out", Message(i, i == 1 ? Data::dict("grid", grid) : grid));
            const DataConstRef data = instance.receive("in").data();
            received.push_back(data.is_a_dict() ? data["grid"] : data);
        }
        // The messages are gone, and their memory is still there.
        for (const DataConstRef &data : received) {
            record::line("equal", std::equal(kept.begin(), kept.end(), data.elements<double>()));
            record::line("shape", data.describe() + " " + data.indexes()[0] + " " + data.indexes()[1]);
            record::line("same memory", data.elements<double>() == DataConstRef(data).elements<double>());
        }
        record::line("kept", std::equal(kept.begin(), kept.end(), grid.elements<double>()));
    }
}
