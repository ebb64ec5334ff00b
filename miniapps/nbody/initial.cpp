#include "initial.hpp"

#include <array>
#include <cmath>

#include "fourier.hpp"

namespace {

constexpr double pi = 3.14159265358979323846;

/// Philox 4x32 with 10 rounds: four random words for a counter and a key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::uint64_t key) {
    std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
        const std::uint64_t a = std::uint64_t(0xD2511F53) * c[0], b = std::uint64_t(0xCD9E8D57) * c[2];
        c = {std::uint32_t(b >> 32) ^ c[1] ^ k0, std::uint32_t(b), std::uint32_t(a >> 32) ^ c[3] ^ k1, std::uint32_t(a)};
    }
    return c;
}

/// A complex number whose two components are normal, of variance 1/2 each (Box and Muller 1958).
Complex normal(int x, int y, int z, std::uint64_t seed) {
    const auto r = philox({std::uint32_t(x), std::uint32_t(y), std::uint32_t(z), 0}, seed);
    const double u = (r[0] + 0.5) * 0x1p-32 + r[1] * 0x1p-64, angle = 2 * pi * (r[2] * 0x1p-32);
    return std::sqrt(-std::log(u)) * Complex(std::cos(angle), std::sin(angle));
}

double power(const Options &options, double x, double y, double z) {
    return std::pow(x * x + y * y + z * z, options.spectrum / 2);
}

/// The density contrast at a = 1 by linear theory, in waves of the grid of particles: (y, z, x). Waves as short as two spacings
/// have none.
std::vector<Complex> contrast(const Options &options, const Fourier &fourier) {
    const int n = options.particles, half = n / 2;
    std::vector<Complex> waves(std::size_t(fourier.end() - fourier.begin()) * (half + 1) * n);
    const auto at = [&](int x, int y, int z) -> Complex & {
        return waves[(std::size_t(y - fourier.begin()) * (half + 1) + z) * n + x];
    };
    const auto is_short = [&](int wave) { return 2 * std::abs(wave) >= n; };
    if (options.initial == "wave") {
        // amplitude times cos(2 pi x), at the middle of the cells of the grid
        if (fourier.begin() == 0) {
            at(1, 0, 0) = options.amplitude / 2 * Complex(std::cos(pi / n), std::sin(pi / n));
            at(n - 1, 0, 0) = std::conj(at(1, 0, 0));
        }
        return waves;
    }
    double sum = 0;
    for (int x = -half; x <= half; x++)
        for (int y = -half; y <= half; y++)
            for (int z = -half; z <= half; z++)
                if (!is_short(x) && !is_short(y) && !is_short(z) && (x || y || z)) sum += power(options, x, y, z);
    for (int iy = fourier.begin(); iy < fourier.end(); iy++)
        for (int z = 0; z <= half; z++)
            for (int ix = 0; ix < n; ix++) {
                const int x = fourier.wave(ix), y = fourier.wave(iy);
                if (is_short(x) || is_short(y) || is_short(z) || (!x && !y && !z)) continue;
                // A real field: the wave in the opposite direction has the conjugate number.
                const bool opposite = z == 0 && (y < 0 || (y == 0 && x < 0));
                const Complex random = opposite ? std::conj(normal(-x, -y, 0, options.seed)) : normal(x, y, z, options.seed);
                at(ix, iy, z) = options.amplitude * std::sqrt(power(options, x, y, z) / sum) * random;
            }
    return waves;
}

/// The displacement along one axis at a = 1, of the whole grid, for all ranks: its divergence is minus the contrast.
std::vector<double> displacement(const std::vector<Complex> &contrast, int axis, Fourier &fourier) {
    const int n = fourier.size();
    std::vector<Complex> waves(contrast.size());
    std::size_t place = 0;
    for (int y = fourier.begin(); y < fourier.end(); y++)
        for (int z = 0; z <= n / 2; z++)
            for (int x = 0; x < n; x++, place++) {
                const double k[3] = {2 * pi * fourier.wave(x), 2 * pi * fourier.wave(y), 2 * pi * z};
                const double k2 = k[0] * k[0] + k[1] * k[1] + k[2] * k[2];
                if (k2 > 0) waves[place] = Complex(0, k[axis] / k2) * contrast[place];
            }
    return fourier.collect(fourier.backward(waves));
}

} // namespace

std::vector<Particle> initial_particles(const Options &options, MPI_Comm part,
                                        const std::function<bool(const Particle &)> &mine) {
    std::vector<Particle> particles;
    if (options.initial == "random") {
        for (std::uint64_t id = 0; id < options.count(); id++) {
            Particle particle{{}, id, {}};
            for (std::uint32_t d = 0; d < 3; d++) {
                const auto r = philox({std::uint32_t(id), std::uint32_t(id >> 32), d, 1}, options.seed);
                particle.x[d] = Coordinate(r[0]) << 32 | r[1];
            }
            if (mine(particle)) particles.push_back(particle);
        }
        return particles;
    }
    const int n = options.particles;
    Fourier fourier(n, part);
    const std::vector<Complex> waves = contrast(options, fourier);
    std::vector<double> moved[3];
    for (int axis = 0; axis < 3; axis++) moved[axis] = displacement(waves, axis, fourier);

    // Growth as a, in a box that expands as a = (3 t / 2)^(2/3); p = a^2 dx/dt. A static box takes the positions
    // at `from`, at rest.
    const double a = options.from, speed = options.expands() ? a * std::sqrt(a) : 0;
    for (std::uint64_t id = 0; id < options.count(); id++) {
        const std::uint64_t cell[3] = {id / n / n, id / n % n, id % n};
        Particle particle{{}, id, {}};
        for (int d = 0; d < 3; d++) {
            // The middle of the cell of the grid.
            const Coordinate x = Coordinate((Wide(2 * cell[d] + 1) << 63) / n);
            particle.x[d] = x + length_of(a * moved[d][id]);
            particle.p[d] = speed * moved[d][id];
        }
        if (mine(particle)) particles.push_back(particle);
    }
    return particles;
}
