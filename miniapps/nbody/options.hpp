// The options of the program.
#ifndef NBODY_OPTIONS_HPP
#define NBODY_OPTIONS_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// An option that cannot be, with what to do about it.
struct BadOption : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    // What is computed: the same for all parts.
    int particles = 32;                  ///< along each edge of the box
    int mesh = 0;                        ///< points along each edge; twice the particles by default, and at least 24
    int steps = 50;
    std::string initial = "zeldovich";   ///< or wave, or random
    std::uint64_t seed = 1;
    double amplitude = 4;                ///< of the density contrast at a = 1 by linear theory: root mean square, or the wave's
    double spectrum = -2;                ///< power of the wave number in the power spectrum
    double from = 0.02, to = 1;          ///< the scale factor
    double time_step = 0;                ///< of a box that does not expand; 0 for one that does
    double softening = 0.03;             ///< in mean distances of the particles
    double split = 1.5;                  ///< r_s, between near and far forces, in cells of the mesh
    double cutoff = 5;                   ///< of the near forces, in r_s
    double theta = 0.4;                  ///< opening angle of the tree

    // The division into parts: the same for all of them.
    int parts = 1;
    std::vector<int> shares;             ///< of the work, one a part
    bool one_way = false;                ///< the mesh goes round the ring in one direction, and not in both
    int frames = 0;

    // This program's own.
    int part = -1;                       ///< the part that this program is; -1 for all of them
    std::vector<int> ranks;              ///< of each part, in a program that is all of them
    std::string listen, open, key;
    int streams = 0;
    std::string out, steps_file, frames_folder = "frames";
    bool quiet = false;

    std::uint64_t count() const { return std::uint64_t(particles) * particles * particles; }
    bool expands() const { return time_step == 0; }
};

/// Reads the command line. Throws BadOption. Returns false if the user asks for help.
bool read_options(int argc, char **argv, Options &options);
void print_help();

/// The settings that must be the same for all parts, a line each: a name, a blank and a value.
std::string description(const Options &options);
/// Throws BadOption if the other part has other settings, and names the first one that differs.
void compare(const std::string &mine, const std::string &other, const std::string &other_name);

#endif
