// The flow in a part of the mesh, by the lattice Boltzmann method: D3Q19, BGK, driven by a force along the tube (Guo, Zheng and Shi,
// Phys. Rev. E 65 (2002) 046308). The wall lies where the tube has it, between cells (Bouzidi, Firdaouss and Lallemand, Phys. Fluids
// 13 (2001) 3452, linear), so the error falls with the square of the cells' size.
//
// Why any number of ranks gives the same bits: a step computes each cell from numbers of its neighbours, by the same expressions on
// every rank, and numbers of other ranks are copied, never recomputed. Compile without -ffast-math and with -ffp-contract=off, so
// that the compiler keeps to those expressions.
#pragma once

#include "exchange.hpp"
#include "mesh.hpp"

#include <array>
#include <cstdint>
#include <vector>

// Density and velocity (x, y, z) of cells.
using Flow = std::array<std::vector<double>, 4>;

class Lattice {
public:
    // At rest, with density 1. The viscosity is in cells squared per step.
    Lattice(const Mesh &mesh, double viscosity);

    // Every cell pulls populations from its neighbours, and collides them, under this force per mass, in cells per step squared.
    void step(Ranks &ranks, double force);
    // The flow at the end of the last step. Only the first cells, those of the mesh, are written.
    void flow(Flow &flow) const;
    // A number that depends on every bit and position of the state. The numbers of all parts add up to that of the whole.
    std::uint64_t fingerprint() const;

private:
    // A population that comes from the wall: `first` and `second` are shares of what leaves towards the wall, and of the number at
    // `source`.
    struct Link {
        int cell, direction;
        double first, second;
        int source;
    };
    void find_sources();
    void find_links();

    const Mesh &mesh_;
    int cells_;
    double omega_;
    // Where each population of each cell comes from; populations of one direction lie together, as in now_.
    std::vector<int> sources_;
    std::vector<Link> links_;
    std::vector<Partner> partners_;
    double force_ = 0.0;
    // Populations by direction and cell, and after them those that other ranks give.
    std::vector<double> now_, next_;
};
