// The cavity's solver alone, without titin. A domain that is divided into blocks must give exactly the same bits as the
// undivided domain.

#include "lattice.hpp"

#include <cstdio>
#include <vector>

namespace {

constexpr int cells = 48, steps = 300;
constexpr int way_x[8] = {1, 0, -1, 0, 1, -1, -1, 1}, way_y[8] = {0, 1, 0, -1, 1, 1, -1, -1};

// Returns u, v, and the density of every cell after all steps, with `across` by `up` blocks.
std::vector<double> divided(int across, int up) {
    std::vector<Lattice> blocks;
    for (int j = 0; j < up; ++j)
        for (int i = 0; i < across; ++i)
            blocks.emplace_back(Block{cells, cells * i / across, cells * (i + 1) / across, //
                                      cells * j / up, cells * (j + 1) / up, 0.1, 100.0});
    for (int step = 0; step < steps; ++step) {
        for (int j = 0; j < up; ++j)
            for (int i = 0; i < across; ++i)
                for (int side = 0; side < 8; ++side) {
                    const int x = i + way_x[side], y = j + way_y[side];
                    if (x < 0 || y < 0 || x >= across || y >= up) continue;
                    const auto crossing = blocks[std::size_t(j * across + i)].leaving(side);
                    blocks[std::size_t(y * across + x)].arrive(opposite(side), crossing.data());
                }
        for (auto &block : blocks) block.step();
    }
    std::vector<double> values(3 * cells * cells);
    for (const auto &block : blocks) {
        const auto fields = block.fields();
        const std::size_t plane = fields.size() / 5;
        for (std::size_t cell = 0; cell < plane; ++cell) {
            const auto x = std::size_t(fields[cell] * cells), y = std::size_t(fields[plane + cell] * cells);
            for (std::size_t k = 0; k < 3; ++k) values[(k * cells + y) * cells + x] = fields[(2 + k) * plane + cell];
        }
    }
    return values;
}

} // namespace

int main() {
    const auto whole = divided(1, 1);
    double momentum = 0;
    for (std::size_t cell = 0; cell < cells * cells; ++cell) momentum += whole[cell] * whole[cell];
    if (!(momentum > 1.0)) return std::fprintf(stderr, "nothing moves\n"), 1;
    const int divisions[][2] = {{2, 1}, {1, 2}, {2, 2}, {3, 2}, {5, 7}, {1, 48}};
    for (const auto [across, up] : divisions)
        if (divided(across, up) != whole) return std::fprintf(stderr, "%d by %d blocks differ\n", across, up), 1;
    return 0;
}
