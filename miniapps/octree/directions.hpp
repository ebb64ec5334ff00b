// The nineteen populations of D3Q19: direction and weight of each. 0 is at rest; each odd one is followed by its opposite.
#pragma once

#include <cstddef>

constexpr int directions = 19;
constexpr int cx[directions] = {0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0};
constexpr int cy[directions] = {0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1};
constexpr int cz[directions] = {0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1};
constexpr double weight(int i) { return i == 0 ? 1. / 3 : i < 7 ? 1. / 18 : 1. / 36; }
constexpr int opposite(int i) { return i == 0 ? 0 : i % 2 ? i + 1 : i - 1; }
