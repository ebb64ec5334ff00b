// What POST_DATA makes of samples of the flow, on the fly: in each cell the mean of density and velocity and their fluctuation (root
// mean square), at the wall the shear, and the flow at some probes as it changes.
//
// Each number is that of one cell, computed from the samples in their order; so it has the same bits on any rank of either program.
#pragma once

#include "exchange.hpp"
#include "lattice.hpp"
#include "mesh.hpp"

#include <array>
#include <cstdint>
#include <vector>

class Statistics {
public:
    // The results in each cell: means and fluctuations of density and velocity (x, y, z); the mean of the shear on the wall, in
    // units of density times squares of cells per step, and its oscillatory index: 0 if the shear never turns, 1/2 if it has no
    // mean direction. Away from the wall the last two are 0.
    static constexpr int results = 10;
    // The numbers of a probe in each sample: density and velocity.
    static constexpr int probed = 4;

    // Probes are points, in parts of the cube's edge.
    Statistics(const Mesh &mesh, double viscosity, const std::vector<std::array<double, 3>> &probes);

    // The cells of which samples are needed: those of the mesh, and after them cells of other ranks that the shear needs.
    const std::vector<Cell> &cells() const { return cells_; }
    // The ranks that have those, for ranks that are divided as the mesh is.
    const std::vector<Partner> &partners() const { return partners_; }
    // A sample of the flow in cells().
    Flow room() const;

    void sample(const Flow &flow);

    // One array for each result, in the mesh's cells. It may be asked for at any time.
    std::vector<std::vector<double>> found() const;
    // The flow at the probes of this rank: probes, samples, numbers.
    std::vector<double> series() const;
    // How many numbers series() has on each rank, and the probes in the order in which those of all ranks have them.
    std::vector<std::size_t> series_sizes() const;
    const std::vector<std::int64_t> &probes() const { return probes_; }
    std::int64_t samples() const { return samples_; }
    // A number that depends on every bit of found() and its place. The numbers of all parts add up to that of the whole.
    std::uint64_t fingerprint() const;

private:
    // A cell at the wall; two places in cells() above it, the shares of their velocities in the slope at the wall, and the normal.
    struct Shear {
        int cell, near, far;
        double share_near, share_far;
        std::array<double, 3> normal;
        std::array<double, 3> sum;
        double sizes;
    };
    // Two cells above a cell at the wall, whose velocities give the shear; `wall` if there are none.
    std::array<Cell, 2> above(Cell cell) const;
    double distance(Cell cell) const;
    void find_partners();
    void find_shears();
    void find_probes(const std::vector<std::array<double, 3>> &probes);

    const Mesh &mesh_;
    double viscosity_;
    std::int64_t samples_ = 0;
    std::vector<Cell> cells_;
    std::vector<Partner> partners_;
    std::array<std::vector<double>, 4> mean_, squares_;
    std::vector<Shear> shears_;
    std::vector<std::int64_t> probes_; // of all ranks
    std::vector<int> owners_;          // of those
    std::vector<int> places_;          // of those of this rank, in cells()
    std::vector<std::vector<double>> series_;
};
