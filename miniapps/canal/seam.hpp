// The seam between two sections of a canal. Populations cross the seam by titin, in both directions in every step. Neither section
// knows the number of ranks of the other.
#pragma once

#include "lattice.hpp"
#include "ranks.hpp"

#include <memory>
#include <string>
#include <titin.hpp>

// One end of a seam, with the steps of listing 2 of the MUSCLE 2 paper. All ranks of a section make all calls.
class Seam {
public:
    virtual ~Seam() = default;
    virtual void gather(Lattice &lattice) = 0;
    virtual void send(Lattice &lattice, double timestamp, double next) = 0;
    virtual void receive(Lattice &lattice) = 0;
    virtual void update(Lattice &lattice) = 0;
};

// The seam at the west or the east end of a section. `exchange` is "fields" or "gathered".
std::unique_ptr<Seam> seam(titin::Instance &instance, Side end, const std::string &exchange, const Ranks &ranks,
                           const Lattice &lattice, int ny);
