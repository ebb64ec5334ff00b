// Gravity in a periodic box: TreePM, by leap-frog, in one or several parts.
//
// Units: the box and its mean density are 1, and times are in Hubble times of a = 1, so 4 pi G = 3/2. Coordinates are comoving.
// Momenta are a^2 dx/dt. The box expands as an Einstein-de Sitter universe, or stands still.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mpi.h>

#include "box.hpp"
#include "clock.hpp"
#include "collect.hpp"
#include "domain.hpp"
#include "exchange.hpp"
#include "initial.hpp"
#include "mesh.hpp"
#include "options.hpp"
#include "output.hpp"
#include "ring.hpp"
#include "tree.hpp"

namespace {

constexpr double four_pi_g = 1.5;
constexpr double pi = 3.14159265358979323846;
/// In cells of the mesh: a cut moves by at most this in a step. What arrives from other parts is expected within twice this of a cut.
constexpr double margin = 1;

class Simulation {
public:
    Simulation(const Options &options, Team team)
        : options_(options), team_(std::move(team)), clock_(options_), law_(law(options)),
          mesh_(options.mesh, team_.ranks, options.split / options.mesh, four_pi_g / double(options.count())),
          slabs_(options.shares), columns_(std::vector<int>(ranks(), 1)),
          exchange_(team_.part, options.parts, team_.ranks, team_.ring.get(), law_), report_(reported(options)),
          work_x_(options.mesh), work_y_(options.mesh) {
        MPI_Comm_rank(team_.ranks, &rank_);
        own_ = initial_particles(options, team_.ranks, [&](const Particle &particle) {
            return slabs_.domain(team_.part).contains(particle.x[0]) && columns_.domain(rank_).contains(particle.x[1]);
        });
    }

    /// Throws BadOption if there can be no such simulation.
    static void check(const Options &o) {
        const double least = least_width(o, law(o));
        const Cuts slabs(o.shares);
        for (int part = 0; part < o.parts && o.parts > 1; part++) {
            const double width = double(slabs.domain(part).length) * unit;
            if (width < least)
                throw BadOption("part " + std::to_string(part) + " would be " + std::to_string(width) +
                                " boxes wide, and must be " + std::to_string(least) +
                                " wide: take fewer --parts, more equal --shares or a larger --mesh");
        }
    }

    void run() {
        evaluate();
        take_frame(0);
        for (int step = 1; step <= options_.steps; step++) {
            const double begin = MPI_Wtime();
            const Traffic before = traffic();
            tree_seconds_ = mesh_seconds_ = 0;
            kick(clock_.kick(step - 1, step - 0.5));
            drift(clock_.drift(step - 1, step));
            evaluate();
            kick(clock_.kick(step - 0.5, step));
            report(step, MPI_Wtime() - begin, before);
            take_frame(step);
        }
        // Where each part is a program, another one may have --out.
        if (!options_.out.empty() || options_.part >= 0) {
            const std::vector<Written> all = everything();
            if (writes() && !options_.out.empty()) write_particles(options_.out, all);
        }
        if (team_.ring) {
            team_.ring->close();
            report_.finish(team_.part);
        }
    }

private:
    static NearForce law(const Options &o) {
        const double spacing = 1.0 / o.mesh, split = o.split * spacing;
        if (o.cutoff * split > 0.35)
            throw BadOption("the near forces reach " + std::to_string(o.cutoff * split) +
                            " boxes far, and may reach 0.35: take a larger --mesh, or a smaller --cutoff or --split");
        return NearForce(split, o.cutoff * split, o.softening / o.particles, o.theta, spacing,
                         four_pi_g / (4 * pi) / double(o.count()));
    }
    int ranks() const {
        int size;
        MPI_Comm_size(team_.ranks, &size);
        return size;
    }
    /// In a program that is all parts, part 0 writes.
    bool writes() const { return team_.ring && (options_.part >= 0 || team_.part == 0); }
    Options reported(const Options &options) const {
        Options reported = options;
        if (!writes()) reported.steps_file.clear(), reported.quiet = true;
        return reported;
    }
    Traffic traffic() const { return team_.ring ? team_.ring->traffic() : Traffic(); }

    /// Of a slab. From four parts on, a part hears only of its neighbours' particles, and must not need others.
    static double least_width(const Options &o, const NearForce &law) {
        const double needs = law.cutoff + 2 * std::ldexp(1.0, -law.group_level) + 2 * margin / o.mesh;
        return o.parts < 4 ? margin / o.mesh : needs;
    }

    void kick(double factor) {
        for (std::size_t i = 0; i < own_.size(); i++)
            for (int d = 0; d < 3; d++) own_[i].p[d] += acceleration_[i][d] * factor;
    }

    void drift(double factor) {
        // From four parts on, all that a part needs must still be with its neighbours.
        const bool has_many_parts = options_.parts >= 4;
        const double most = has_many_parts ? margin / options_.mesh : 0.25;
        for (Particle &particle : own_)
            for (int d = 0; d < 3; d++) {
                const double by = particle.p[d] * factor;
                if (!(std::abs(by) < most))
                    throw std::runtime_error("particle " + std::to_string(particle.id) + " moves by " + std::to_string(by) +
                                             " boxes in one step, and may by " + std::to_string(most) +
                                             ": take more --steps, a smaller --static" +
                                             (has_many_parts ? ", or fewer than four --parts" : ""));
                particle.x[d] += length_of(by);
            }
    }

    /// All forces. What other parts need is sent first, and is under way while this part computes what needs nothing of theirs.
    void evaluate() {
        const Interval before = slabs_.domain(team_.part);
        follow_work();
        exchange_.begin(slabs_, own_);
        Bytes round = deposit();
        std::vector<std::unique_ptr<Arrival>> meshes;
        if (team_.ring) meshes = team_.ring->begin_round(std::move(round));
        std::vector<Body> others;
        exchange_.within(slabs_, columns_, own_, others);

        // Deep inside of the slab nothing is expected.
        const Interval quiet = widened(before, -2 * margin / options_.mesh);
        near_forces(quiet, others, true);
        const bool is_quiet = exchange_.finish(quiet, own_, others);
        near_forces({}, others, !is_quiet);
        far_forces(std::move(meshes));
    }

    /// Of the groups that need nothing outside of `known` and that are not done. `anew`: no group is done.
    void near_forces(const Interval &known, const std::vector<Body> &others, bool anew) {
        const double begin = MPI_Wtime();
        if (anew) done_.clear();
        done_.resize(own_.size());
        acceleration_.resize(own_.size());
        work_.resize(own_.size());
        std::vector<Body> bodies;
        for (const Particle &particle : own_) bodies.push_back(particle.body());
        bodies.insert(bodies.end(), others.begin(), others.end());
        Tree(bodies, own_.size(), law_).forces(known, acceleration_, work_, done_);
        tree_seconds_ += MPI_Wtime() - begin;
    }

    /// Beside its density, a part tells the others its work at the forces before.
    Bytes deposit() {
        const double begin = MPI_Wtime();
        mesh_.deposit(own_);
        Bytes round;
        if (team_.ring) {
            const std::size_t size = work_x_.size() * sizeof work_x_[0];
            round.resize(size);
            std::memcpy(round.data(), work_x_.data(), size);
            mesh_.pack(round);
        }
        mesh_seconds_ += MPI_Wtime() - begin;
        return round;
    }

    void far_forces(std::vector<std::unique_ptr<Arrival>> arrivals) {
        std::vector<Bytes> meshes;
        if (team_.ring) meshes = team_.ring->take(std::move(arrivals));
        const double begin = MPI_Wtime();
        const std::size_t bins = work_x_.size();
        for (const Bytes &message : meshes) {
            Histogram theirs(bins);
            std::memcpy(theirs.data(), message.data(), bins * sizeof theirs[0]);
            for (std::size_t i = 0; i < bins; i++) work_x_[i] += theirs[i];
            mesh_.add(message.data() + bins * sizeof theirs[0]);
        }
        mesh_.solve();
        mesh_.forces(own_, acceleration_);
        known_work_ = work_x_;
        MPI_Bcast(known_work_.data(), int(bins), MPI_UINT64_T, 0, team_.ranks);
        count_work();
        mesh_seconds_ += MPI_Wtime() - begin;
    }

    /// The work of this part, along both axes. A particle's share of the mesh counts as some interactions.
    void count_work() {
        constexpr std::uint64_t of_the_mesh = 100;
        std::fill(work_x_.begin(), work_x_.end(), 0);
        std::fill(work_y_.begin(), work_y_.end(), 0);
        interactions_ = 0;
        for (std::size_t i = 0; i < own_.size(); i++) {
            work_x_[bin(own_[i].x[0], work_x_.size())] += work_[i] + of_the_mesh;
            work_y_[bin(own_[i].x[1], work_y_.size())] += work_[i] + of_the_mesh;
            interactions_ += work_[i];
        }
        const auto sum = [&](std::uint64_t *values, std::size_t count) {
            MPI_Allreduce(MPI_IN_PLACE, values, int(count), MPI_UINT64_T, MPI_SUM, team_.ranks);
        };
        sum(work_x_.data(), work_x_.size());
        sum(work_y_.data(), work_y_.size());
        sum(&interactions_, 1);
    }

    void follow_work() {
        if (known_work_.empty()) return;
        slabs_.follow(known_work_, margin / options_.mesh, least_width(options_, law_));
        columns_.follow(work_y_, 0.4, margin / options_.mesh);
    }

    /// All particles of all parts, at the first rank of each.
    std::vector<Written> everything() {
        std::vector<Written> mine;
        for (std::size_t i = 0; i < own_.size(); i++) {
            const Particle &p = own_[i];
            mine.push_back({p.id, {}});
            for (int d = 0; d < 3; d++) {
                mine.back().values[d] = double(p.x[d] >> 11) * 0x1p-53;
                mine.back().values[3 + d] = p.p[d];
                mine.back().values[6 + d] = acceleration_[i][d];
            }
        }
        std::vector<Written> all = gather(mine, team_.ranks, ranks());
        if (!team_.ring) return all;
        const char *begin = reinterpret_cast<const char *>(all.data());
        auto arrivals = team_.ring->begin_round(Bytes(begin, begin + all.size() * sizeof(Written)));
        for (const Bytes &bytes : team_.ring->take(std::move(arrivals))) {
            const Written *theirs = reinterpret_cast<const Written *>(bytes.data());
            all.insert(all.end(), theirs, theirs + bytes.size() / sizeof(Written));
        }
        return all;
    }

    /// Snapshots, evenly over the run.
    void take_frame(int step) {
        const long long frames = options_.frames, steps = options_.steps;
        if (!frames || step * frames / std::max(1ll, steps) == (step - 1) * frames / std::max(1ll, steps)) return;
        const std::vector<Written> all = everything();
        if (!writes()) return;
        char name[32];
        std::snprintf(name, sizeof name, "/%05d.npy", step);
        std::filesystem::create_directories(options_.frames_folder);
        write_particles(options_.frames_folder + name, all);
    }

    void report(int number, double seconds, const Traffic &before) {
        std::uint64_t particles = own_.size();
        MPI_Allreduce(MPI_IN_PLACE, &particles, 1, MPI_UINT64_T, MPI_SUM, team_.ranks);
        if (!team_.ring) return;
        const Traffic now = traffic();
        const Interval slab = slabs_.domain(team_.part);
        const double begin = double(slab.begin) * unit;
        report_.add({number, clock_.a(number), seconds, now.seconds - before.seconds, now.waited - before.waited, tree_seconds_,
                     mesh_seconds_, now.sent - before.sent, now.received - before.received, particles, interactions_, begin,
                     slab.all ? 1 : begin + double(slab.length) * unit});
    }

    const Options options_;
    Team team_;
    const Clock clock_;
    const NearForce law_;
    Mesh mesh_;
    Cuts slabs_, columns_;
    Exchange exchange_;
    Report report_;
    int rank_ = 0;

    std::vector<Particle> own_;
    std::vector<Vector> acceleration_;
    std::vector<std::uint32_t> work_; ///< interactions of each
    std::vector<char> done_;
    Histogram work_x_, work_y_; ///< of this part
    Histogram known_work_;      ///< along x, of all parts, one evaluation before
    std::uint64_t interactions_ = 0;
    double tree_seconds_ = 0, mesh_seconds_ = 0;
};

int run(int argc, char **argv) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    try {
        Options options;
        if (!read_options(argc, argv, options)) {
            if (rank == 0) print_help();
            return 0;
        }
        Simulation::check(options);
        Simulation(options, find_team(options)).run();
        return 0;
    } catch (const BadOption &error) {
        // Every rank finds the same.
        if (rank == 0) std::fprintf(stderr, "nbody: %s\n", error.what());
    } catch (const std::exception &error) {
        std::fprintf(stderr, "nbody: %s\n", error.what());
        int ranks;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        if (ranks > 1) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return 1;
}

} // namespace

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    const int status = run(argc, argv);
    MPI_Finalize();
    return status;
}
