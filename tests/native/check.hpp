// What the programs in C++ share: a check that says where it failed.
#pragma once

#include <iostream>
#include <stdexcept>
#include <string>

#include <titin.hpp>

#define CHECK(what) \
    if (!(what)) throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #what)

// Checks that a call throws this.
template <class Wanted, class Call>
void refused(const char *what, Call &&call) {
    try {
        call();
    } catch (const Wanted &) {
        return;
    }
    throw std::runtime_error(std::string("not refused: ") + what);
}

// Checks that a call throws this, and says so.
template <class Wanted, class Call>
void refused_saying(const std::string &text, Call &&call) {
    try {
        call();
    } catch (const Wanted &error) {
        if (std::string(error.what()).find(text) != std::string::npos) return;
        throw std::runtime_error("not said: " + text + ", but: " + error.what());
    }
    throw std::runtime_error("not refused: " + text);
}

// Runs a program's body; an exception is printed and ends it with 1.
template <class Body>
int guarded(Body &&body) {
    try {
        body();
        return 0;
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
