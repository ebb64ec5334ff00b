#include "lattice.hpp"

namespace {

// D2Q9: direction, weight and opposite of each population. 0 is at rest, 1 to 8 follow `compass`.
constexpr int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
constexpr int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
constexpr double weight[9] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};
constexpr int back[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};

// A population crosses a side if it moves towards the side; at a corner, towards both adjoining sides.
bool crosses(int i, int side) {
    const int sx = cx[side + 1], sy = cy[side + 1];
    return (sx == 0 || cx[i] == sx) && (sy == 0 || cy[i] == sy);
}

// The cells along a side: [x, x_end) by [y, y_end), inside the block or, for `halo`, just outside it.
struct Strip {
    int x, x_end, y, y_end;
};

Strip strip(int side, int nx, int ny, bool halo) {
    const auto range = [halo](int way, int cells) {
        if (way == 0) return std::array{0, cells};
        const int first = way > 0 ? cells - 1 + halo : -halo;
        return std::array{first, first + 1};
    };
    const auto [x, x_end] = range(cx[side + 1], nx);
    const auto [y, y_end] = range(cy[side + 1], ny);
    return {x, x_end, y, y_end};
}

} // namespace

Lattice::Lattice(const Block &block)
    : block_(block), nx_(block.x1 - block.x0), ny_(block.y1 - block.y0) {
    const double viscosity = block.lid * block.n / block.reynolds;
    omega_ = 1.0 / (3.0 * viscosity + 0.5);
    for (int i = 0; i < 9; ++i) {
        now_[i].assign(std::size_t(nx_ + 2) * std::size_t(ny_ + 2), weight[i]); // at rest, density 1
        next_[i] = now_[i];
    }
}

std::size_t Lattice::crossing(int side) const {
    const Strip s = strip(side, nx_, ny_, false);
    const std::size_t cells = std::size_t(s.x_end - s.x) * std::size_t(s.y_end - s.y);
    return cells * (side < 4 ? 3 : 1);
}

std::vector<double> Lattice::leaving(int side) const {
    std::vector<double> populations;
    populations.reserve(crossing(side));
    const Strip s = strip(side, nx_, ny_, false);
    for (int i = 1; i < 9; ++i) {
        if (!crosses(i, side)) continue;
        for (int y = s.y; y < s.y_end; ++y)
            for (int x = s.x; x < s.x_end; ++x) populations.push_back(now_[i][at(x, y)]);
    }
    return populations;
}

void Lattice::arrive(int side, const double *populations) {
    const Strip s = strip(side, nx_, ny_, true);
    for (int i = 1; i < 9; ++i) {
        if (!crosses(i, opposite(side))) continue;
        for (int y = s.y; y < s.y_end; ++y)
            for (int x = s.x; x < s.x_end; ++x) now_[i][at(x, y)] = *populations++;
    }
}

// Half-way bounce-back, written into the halo: where cell (x, y) will look for population i, the cell finds its own
// population back[i], plus the push of the wall. Runs after the data of the seams have come: a cell beside a wall
// must find the wall even where the wall meets a seam. The lid comes last, so the upper corners belong to the lid.
void Lattice::bounce() {
    const auto wall = [this](int x, int y, int way_x, int way_y, double speed) {
        for (int i = 1; i < 9; ++i) {
            const bool inward = way_x != 0 ? cx[i] == -way_x : cy[i] == -way_y;
            if (inward) now_[i][at(x - cx[i], y - cy[i])] = now_[back[i]][at(x, y)] + 6.0 * weight[i] * cx[i] * speed;
        }
    };
    if (block_.x0 == 0)
        for (int y = 0; y < ny_; ++y) wall(0, y, -1, 0, 0.0);
    if (block_.x1 == block_.n)
        for (int y = 0; y < ny_; ++y) wall(nx_ - 1, y, 1, 0, 0.0);
    if (block_.y0 == 0)
        for (int x = 0; x < nx_; ++x) wall(x, 0, 0, -1, 0.0);
    if (block_.y1 == block_.n)
        for (int x = 0; x < nx_; ++x) wall(x, ny_ - 1, 0, 1, block_.lid);
}

// Pull and collide in one sweep: a cell gathers the nine populations that move to it, and relaxes them.
void Lattice::step() {
    bounce();
    const double omega = omega_;
    for (int y = 0; y < ny_; ++y) {
        const double *from[9];
        double *to[9];
        for (int i = 0; i < 9; ++i) {
            from[i] = now_[i].data() + at(-cx[i], y - cy[i]);
            to[i] = next_[i].data() + at(0, y);
        }
        for (int x = 0; x < nx_; ++x) {
            const double f0 = from[0][x], f1 = from[1][x], f2 = from[2][x], f3 = from[3][x], f4 = from[4][x];
            const double f5 = from[5][x], f6 = from[6][x], f7 = from[7][x], f8 = from[8][x];
            const double density = f0 + (f1 + f3) + (f2 + f4) + (f5 + f7) + (f6 + f8);
            const double u = ((f1 - f3) + (f5 - f7) + (f8 - f6)) / density;
            const double v = ((f2 - f4) + (f5 - f7) + (f6 - f8)) / density;
            const double rest = 1.0 - 1.5 * (u * u + v * v);
            const double axis = omega * density * weight[1], diagonal = omega * density * weight[5];
            const double keep = 1.0 - omega, a = u + v, b = v - u;
            to[0][x] = keep * f0 + omega * density * weight[0] * rest;
            to[1][x] = keep * f1 + axis * (rest + 3.0 * u + 4.5 * u * u);
            to[3][x] = keep * f3 + axis * (rest - 3.0 * u + 4.5 * u * u);
            to[2][x] = keep * f2 + axis * (rest + 3.0 * v + 4.5 * v * v);
            to[4][x] = keep * f4 + axis * (rest - 3.0 * v + 4.5 * v * v);
            to[5][x] = keep * f5 + diagonal * (rest + 3.0 * a + 4.5 * a * a);
            to[7][x] = keep * f7 + diagonal * (rest - 3.0 * a + 4.5 * a * a);
            to[6][x] = keep * f6 + diagonal * (rest + 3.0 * b + 4.5 * b * b);
            to[8][x] = keep * f8 + diagonal * (rest - 3.0 * b + 4.5 * b * b);
        }
    }
    now_.swap(next_);
}

std::vector<double> Lattice::fields() const {
    const std::size_t plane = std::size_t(nx_) * std::size_t(ny_);
    std::vector<double> fields(5 * plane);
    for (int y = 0; y < ny_; ++y)
        for (int x = 0; x < nx_; ++x) {
            double density = 0, u = 0, v = 0;
            for (int i = 0; i < 9; ++i) {
                const double f = now_[i][at(x, y)];
                density += f;
                u += cx[i] * f;
                v += cy[i] * f;
            }
            const std::size_t cell = std::size_t(y) * std::size_t(nx_) + std::size_t(x);
            fields[0 * plane + cell] = (block_.x0 + x + 0.5) / block_.n;
            fields[1 * plane + cell] = (block_.y0 + y + 0.5) / block_.n;
            fields[2 * plane + cell] = u / density / block_.lid;
            fields[3 * plane + cell] = v / density / block_.lid;
            fields[4 * plane + cell] = density;
        }
    return fields;
}
