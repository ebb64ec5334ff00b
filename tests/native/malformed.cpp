// Receives messages with each receiving call in turn, and prints each error. All messages but the last are malformed.
#include "check.hpp"

static void receive(titin::Instance &instance, int turn) {
    double number[1];
    if (turn == 0) instance.receive("in");
    if (turn == 1) instance.receive_any({"in"});
    if (turn == 2) instance.receive_into("in", number);
    while (turn == 3) CHECK(!instance.try_receive("in"));
}

int main(int argc, char **argv) {
    return guarded([&] {
        CHECK(argc == 2);
        titin::Instance instance({{titin::S, {"in"}}});
        instance.run([&] {
            for (int i = 0; i < std::stoi(argv[1]); ++i) {
                try {
                    receive(instance, i % 4);
                    CHECK(!"a malformed message");
                } catch (const titin::TypeMismatch &error) {
                    std::cout << error.what() << '\n';
                }
            }
            CHECK(instance.receive("in").value().as<std::string>() == "well");
        });
    });
}
