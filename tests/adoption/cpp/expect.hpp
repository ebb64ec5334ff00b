// For programs that write nothing if all is well: a check that prints its line, and counts what has failed.
#ifndef EXPECT_HPP
#define EXPECT_HPP

#include <iostream>

static int failures = 0;

#define EXPECT(condition)                                                                                                         \
    do {                                                                                                                          \
        if (!(condition)) {                                                                                                       \
            std::cout << "line " << __LINE__ << ": " << #condition << std::endl;                                                  \
            ++failures;                                                                                                           \
        }                                                                                                                         \
    } while (false)

#endif
