// A program of several ranks whose root is the rank that the setting names. Every rank writes what it got.
#include "record.hpp"

using libmuscle::Data;
using libmuscle::DataConstRef;
using libmuscle::Message;
using ymmsl::Operator;

int main(int argc, char *argv[]) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int root = std::stoi(argv[1]);
    std::ostringstream written;
    {
        libmuscle::Instance instance(argc, argv, {{Operator::F_INIT, {"in"}}, {Operator::O_F, {"out"}}}, MPI_COMM_WORLD, root);
        while (instance.reuse_instance()) {
            const double k = instance.get_setting_as<double>("k");
            const Message message = instance.receive("in");
            written << "rank " << rank << ": k " << k << ", " << record::show(message) << "\n";
            double sum = rank * k, all = 0;
            MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
            // The messages of other ranks are ignored.
            instance.send("out", Message(message.timestamp(), Data(rank == root ? all : -1.0)));
            if (rank == root) instance.send("out", Message(message.timestamp() + 0.5, Data::dict("again", message.data())));
        }
    }
    std::vector<char> text(10000, 0);
    std::vector<char> gathered(static_cast<std::size_t>(ranks) * text.size(), 0);
    written.str().copy(text.data(), text.size() - 1);
    MPI_Gather(text.data(), 10000, MPI_CHAR, gathered.data(), 10000, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < ranks; ++i) std::cout << &gathered[static_cast<std::size_t>(i) * text.size()];
    MPI_Finalize();
}
