// Errors that end a program, caught in main. The argument names the error.
#include <iostream>
#include <string>
#include <titin.hpp>

int main(int, char **argv) try {
    const std::string which = argv[1];
    titin::Instance instance({{titin::F_INIT, {"start"}}, {titin::S, {"in"}}, {titin::O_I, {"out", "wide"}}, {titin::O_F, {"end"}}});
    const titin::Message msg(titin::Value(1.5));
    if (which == "viewed") msg.array<double>();
    if (which == "setting") instance.setting<double>("nope");
    if (which == "loop") instance.run([&] { msg.array<double>(); });
    return 3;
} catch (const titin::Error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
