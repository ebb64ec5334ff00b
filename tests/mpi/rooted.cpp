// Ranks of which the root alone gets the data of messages: the script of rooted.c.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <titin_mpi.hpp>

#define CHECK(what) \
    do { \
        if (!(what)) throw titin::UsageError(std::string("failed: ") + #what); \
    } while (0)

static void answer(titin::Instance &instance) {
    const bool root = instance.rank() == 0;
    for (double use = 0.0; instance.reuse(); ++use) {
        const titin::Message message = instance.receive("ask");
        CHECK(message.kind() == (root ? titin::Kind::Array : titin::Kind::Nil));
        CHECK(message.timestamp() == use && message.next_timestamp() == use + 1.0 && message.settings().size() == 1);
        std::array<double, 3> numbers{-1.0, -1.0, -1.0};
        CHECK(instance.receive_into("more", numbers).timestamp() == use);
        CHECK(numbers[2] == (root ? use : -1.0));
        if (root || use == 0.0) instance.send("answer", numbers, use);
    }
    instance.close();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int failed = 0;
    try {
        titin::Options options = titin::Options().receive(titin::Receive::AllRanks).receive(titin::Receive::RootOnly);
        titin::Instance instance("f_init: ask more; o_f: answer", titin::mpi::ranks(MPI_COMM_WORLD, std::move(options)));
        answer(instance);
    } catch (const titin::Error &error) {
        std::cerr << error.what() << '\n';
        failed = 1;
    }
    MPI_Finalize();
    return failed;
}
