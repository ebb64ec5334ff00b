#include "output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE *)>;

File open(const std::string &name, const char *what) {
    File file(std::fopen(name.c_str(), "wb"), std::fclose);
    if (!file)
        throw std::runtime_error(name + " cannot be written: " + std::strerror(errno) + "; choose another place with " + what);
    return file;
}

} // namespace

void write_particles(const std::string &name, std::vector<Written> particles) {
    std::sort(particles.begin(), particles.end(), [](const Written &a, const Written &b) { return a.id < b.id; });
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(particles.size()) + ", 9), }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    const char length[2] = {char(header.size() & 255), char(header.size() >> 8)};
    const File file = open(name, "--out or --frames-folder");
    std::fwrite("\x93NUMPY\x01\x00", 1, 8, file.get());
    std::fwrite(length, 1, 2, file.get());
    std::fwrite(header.data(), 1, header.size(), file.get());
    for (const Written &particle : particles) std::fwrite(particle.values, sizeof particle.values, 1, file.get());
    // A failure of an earlier buffer sticks to the file.
    if (std::fflush(file.get()) || std::ferror(file.get()))
        throw std::runtime_error(name + " cannot be written: " + std::strerror(errno) + "; make room");
}

Report::Report(const Options &options)
    : options_(options), steps_(nullptr, std::fclose), shows_(!options.quiet && isatty(STDERR_FILENO)) {
    if (options.steps_file.empty()) return;
    steps_ = open(options.steps_file, "--steps-file");
    std::fputs("step,a,seconds,communication,waiting,tree,mesh,sent,received,particles,interactions,begin,end\n", steps_.get());
}

void Report::add(const Step &s) {
    if (steps_) {
        std::fprintf(steps_.get(), "%d,%.9g,%.6f,%.6f,%.6f,%.6f,%.6f,%lld,%lld,%llu,%llu,%.6f,%.6f\n", s.number, s.a, s.seconds,
                     s.communication, s.waiting, s.tree, s.mesh, (long long)s.sent, (long long)s.received,
                     (unsigned long long)s.particles, (unsigned long long)s.interactions, s.begin, s.end);
        std::fflush(steps_.get());
    }
    if (shows_)
        std::fprintf(stderr, "\rstep %d of %d, a = %.3f, %.3f s, waiting %.3f s ", s.number, options_.steps, s.a, s.seconds,
                     s.waiting);
    count_++;
    sum_.seconds += s.seconds;
    sum_.communication += s.communication;
    sum_.waiting += s.waiting;
    sum_.sent += s.sent;
}

void Report::finish(int part) {
    if (options_.quiet || !count_) return;
    if (shows_) std::fputc('\n', stderr);
    std::printf("part %d: %d steps, each %.4f s; between parts %.4f s, of which waiting %.4f s; sent %.3f MB\n", part, count_,
                sum_.seconds / count_, sum_.communication / count_, sum_.waiting / count_, 1e-6 * double(sum_.sent) / count_);
    std::fflush(stdout);
}
