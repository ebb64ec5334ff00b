#include "options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <getopt.h>
#include <sstream>

namespace {

const char *const help = R"(nbody: gravity in a periodic box, in one or several parts

What is computed (the same for all parts):
  --particles N      particles along each edge of the box (32)
  --mesh N           points of the mesh along each edge (twice the particles, and at least 24)
  --steps N          (50)
  --initial WHAT     zeldovich: random waves of a power spectrum; wave: a single one; random: positions at random (zeldovich)
  --seed N           of the random numbers (1)
  --amplitude D      density contrast by linear theory at a = 1: root mean square, or of the single wave (4)
  --spectrum N       power of the wave number in the power spectrum (-2)
  --from A --to A    scale factors of an expanding box (0.02 to 1)
  --static DT        a box that does not expand, in time steps of DT Hubble times
  --softening S      in mean distances of the particles (0.03)
  --split R          scale r_s of the split into near and far forces, in cells of the mesh (1.5)
  --cutoff R         reach of the near forces, in r_s, at most 6 (5)
  --theta T          opening angle of the tree (0.4)

How it is divided (the same for all parts):
  --parts N          parts in a ring, slabs of the box (1)
  --shares A:B:...   of the work, one a part (equal)
  --round WAY        the way of the mesh round the ring: both, or one (both)
  --frames N         snapshots, evenly over the run (0)

This program:
  --ranks A,B,...    one MPI program is all parts: ranks of each (equal)
  --part I           this program is part I, from 0 on
  --listen HOST:PORT where the part before this one in the ring opens its path; with two parts: part 0 listens
  --open HOST:PORT   where the part after this one listens; with two parts: part 1 opens
  --key FILE         the key of the paths (that of TITIN_PATH_KEY); titin path key FILE makes one
  --streams N        of the path that this program opens (titin chooses)
  --out FILE         final positions, momenta and accelerations by number of the particle, as .npy
  --steps-file FILE  times and bytes of each step, as CSV
  --frames-folder D  where snapshots go (frames)
  --quiet            no progress and no summary
)";

[[noreturn]] void bad(const std::string &message) { throw BadOption(message + "; --help lists the options"); }

double number(const std::string &name, const std::string &text, double least, double most) {
    char *end;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !(value >= least && value <= most)) {
        std::ostringstream message;
        message << "--" << name << " is `" << text << "`: give a number from " << least << " to " << most;
        bad(message.str());
    }
    return value;
}

int whole(const std::string &name, const std::string &text, double least, double most) {
    const double value = number(name, text, least, most);
    if (value != int(value)) bad("--" + name + " is `" + text + "`: give a whole number");
    return int(value);
}

std::vector<int> list(const std::string &name, const std::string &text, char separator) {
    std::vector<int> values;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, separator);) values.push_back(whole(name, word, 1, 1e6));
    return values;
}

std::string one_of(const std::string &name, const std::string &text, const std::vector<std::string> &choices) {
    std::string all;
    for (const std::string &choice : choices) {
        if (choice == text) return text;
        all += (all.empty() ? "" : ", ") + choice;
    }
    bad("--" + name + " is `" + text + "`: give one of " + all);
}

/// What does not fit together.
void check(Options &o) {
    if (o.mesh == 0) o.mesh = std::max(24, 2 * o.particles);
    if (o.mesh % 2) bad("--mesh is " + std::to_string(o.mesh) + ": give an even number");
    if (o.shares.empty()) o.shares.assign(o.parts, 1);
    if (int(o.shares.size()) != o.parts)
        bad("--shares has " + std::to_string(o.shares.size()) + " numbers, and there are " + std::to_string(o.parts) +
            " parts: give one a part");
    if (!o.ranks.empty() && int(o.ranks.size()) != o.parts)
        bad("--ranks has " + std::to_string(o.ranks.size()) + " numbers, and there are " + std::to_string(o.parts) +
            " parts: give one a part");
    if (o.expands() && o.from >= o.to) bad("--from is not below --to: the box expands");
    if (o.part < 0) {
        if (!o.listen.empty() || !o.open.empty()) bad("--listen and --open are for one part of several: give --part, too");
        return;
    }
    if (o.part >= o.parts)
        bad("--part is " + std::to_string(o.part) + ", and there are " + std::to_string(o.parts) + " parts: they count from 0");
    if (!o.ranks.empty()) bad("--ranks is for a program that is all parts: with --part, mpirun -n says how many ranks");
    const bool listens = o.parts > 2 || (o.parts == 2 && o.part == 0), opens = o.parts > 2 || (o.parts == 2 && o.part == 1);
    const std::string who = "part " + std::to_string(o.part) + " of " + std::to_string(o.parts);
    if (listens == o.listen.empty())
        bad(who + (listens ? " listens: give --listen HOST:PORT" : " does not listen: leave out --listen"));
    if (opens == o.open.empty())
        bad(who + (opens ? " opens a path: give --open HOST:PORT" : " opens no path: leave out --open"));
}

} // namespace

bool read_options(int argc, char **argv, Options &o) {
    bool wants_help = false;
    struct Entry {
        std::string name;
        bool has_value;
        std::function<void(const std::string &)> set;
    };
    const std::vector<Entry> entries = {
        {"particles", true, [&](auto &v) { o.particles = whole("particles", v, 4, 256); }},
        {"mesh", true, [&](auto &v) { o.mesh = whole("mesh", v, 24, 512); }},
        {"steps", true, [&](auto &v) { o.steps = whole("steps", v, 0, 1e9); }},
        {"initial", true, [&](auto &v) { o.initial = one_of("initial", v, {"zeldovich", "wave", "random"}); }},
        {"seed", true, [&](auto &v) { o.seed = whole("seed", v, 0, 2147483647.); }},
        {"amplitude", true, [&](auto &v) { o.amplitude = number("amplitude", v, 0, 1e3); }},
        {"spectrum", true, [&](auto &v) { o.spectrum = number("spectrum", v, -10, 10); }},
        {"from", true, [&](auto &v) { o.from = number("from", v, 1e-6, 1e6); }},
        {"to", true, [&](auto &v) { o.to = number("to", v, 1e-6, 1e6); }},
        {"static", true, [&](auto &v) { o.time_step = number("static", v, 1e-9, 1e3); }},
        {"softening", true, [&](auto &v) { o.softening = number("softening", v, 1e-4, 1); }},
        {"split", true, [&](auto &v) { o.split = number("split", v, 0.5, 4); }},
        {"cutoff", true, [&](auto &v) { o.cutoff = number("cutoff", v, 3, 6); }},
        {"theta", true, [&](auto &v) { o.theta = number("theta", v, 0, 1); }},
        {"parts", true, [&](auto &v) { o.parts = whole("parts", v, 1, 1e3); }},
        {"shares", true, [&](auto &v) { o.shares = list("shares", v, ':'); }},
        {"round", true, [&](auto &v) { o.one_way = one_of("round", v, {"both", "one"}) == "one"; }},
        {"frames", true, [&](auto &v) { o.frames = whole("frames", v, 0, 1e6); }},
        {"part", true, [&](auto &v) { o.part = whole("part", v, 0, 1e3); }},
        {"ranks", true, [&](auto &v) { o.ranks = list("ranks", v, ','); }},
        {"listen", true, [&](auto &v) { o.listen = v; }},
        {"open", true, [&](auto &v) { o.open = v; }},
        {"key", true, [&](auto &v) { o.key = v; }},
        {"streams", true, [&](auto &v) { o.streams = whole("streams", v, 1, 256); }},
        {"out", true, [&](auto &v) { o.out = v; }},
        {"steps-file", true, [&](auto &v) { o.steps_file = v; }},
        {"frames-folder", true, [&](auto &v) { o.frames_folder = v; }},
        {"quiet", false, [&](auto &) { o.quiet = true; }},
        {"help", false, [&](auto &) { wants_help = true; }},
    };
    std::vector<option> table;
    for (const Entry &entry : entries)
        table.push_back({entry.name.c_str(), entry.has_value ? required_argument : no_argument, nullptr, 0});
    table.push_back({nullptr, 0, nullptr, 0});
    opterr = 0;
    int index = 0;
    for (int found; (found = getopt_long(argc, argv, ":", table.data(), &index)) != -1;) {
        if (found == ':') bad(std::string(argv[optind - 1]) + " needs a value");
        if (found == '?') bad("there is no option " + std::string(argv[optind - 1]));
        entries[index].set(optarg ? optarg : "");
    }
    if (optind < argc) bad("`" + std::string(argv[optind]) + "` is not an option");
    if (wants_help) return false;
    check(o);
    return true;
}

void print_help() { std::fputs(help, stdout); }

std::string description(const Options &o) {
    std::ostringstream text;
    text.precision(17);
    text << "nbody 1\nparticles " << o.particles << "\nmesh " << o.mesh << "\nsteps " << o.steps << "\ninitial " << o.initial
         << "\nseed " << o.seed << "\namplitude " << o.amplitude << "\nspectrum " << o.spectrum << "\nfrom " << o.from << "\nto "
         << o.to << "\nstatic " << o.time_step << "\nsoftening " << o.softening << "\nsplit " << o.split << "\ncutoff "
         << o.cutoff << "\ntheta " << o.theta << "\nparts " << o.parts << "\nshares ";
    for (std::size_t i = 0; i < o.shares.size(); i++) text << (i ? ":" : "") << o.shares[i];
    text << "\nround " << (o.one_way ? "one" : "both") << "\nframes " << o.frames << '\n';
    return text.str();
}

void compare(const std::string &mine, const std::string &other, const std::string &other_name) {
    std::istringstream a(mine), b(other);
    for (std::string name, here, there; a >> name >> here;) {
        std::string same;
        b >> same >> there;
        if (same != name) throw BadOption(other_name + " is another release of this program: build both from the same sources");
        if (here != there)
            throw BadOption("--" + name + " is " + here + " here, and " + there + " at " + other_name +
                            ": start all parts with the same settings");
    }
}
