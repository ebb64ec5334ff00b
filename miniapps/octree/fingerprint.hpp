// A number that depends on every bit of a number and on its position: the position goes in first, so that equal numbers at
// different positions differ; then follows the mixing of SplitMix64.
#pragma once

#include <cstdint>
#include <cstring>

inline std::uint64_t fingerprint(std::uint64_t position, double number) {
    std::uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    bits ^= position * 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
}
