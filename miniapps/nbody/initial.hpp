// The initial particles: a grid that is displaced after Zel'dovich (1970), or positions at random.
//
// Each random number is a function of the seed and of the wave or particle that it is for (Philox: Salmon et al. 2011), and so
// does not depend on the division.
#ifndef NBODY_INITIAL_HPP
#define NBODY_INITIAL_HPP

#include <functional>
#include <mpi.h>
#include <vector>

#include "box.hpp"
#include "options.hpp"

/// Those of all particles for which `mine` is true, at the scale factor `from`. All ranks of the part call it.
std::vector<Particle> initial_particles(const Options &options, MPI_Comm part, const std::function<bool(const Particle &)> &mine);

#endif
