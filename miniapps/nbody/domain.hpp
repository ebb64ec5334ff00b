// Which part and which rank has what: slabs of the box along x, one a part, and in each part columns along y, one a rank. The
// cuts follow the work, which is counted in interactions, so that a run can be repeated.
#ifndef NBODY_DOMAIN_HPP
#define NBODY_DOMAIN_HPP

#include <vector>

#include "box.hpp"

/// Work along an axis, in bins of equal length.
using Histogram = std::vector<std::uint64_t>;

class Cuts {
public:
    /// The box is cut by the shares.
    explicit Cuts(std::vector<int> shares);

    int count() const { return int(shares_.size()); }
    Interval domain(int i) const;
    /// Cuts the work by the shares. No cut moves by more than `most`, and no domain gets shorter than `least`, as far as both
    /// can be had; lengths are in boxes.
    void follow(const Histogram &work, double most, double least);

private:
    std::vector<int> shares_;
    std::vector<Coordinate> begins_; ///< of the domains; the first one is 0
};

/// The bin of a histogram with so many bins.
inline std::size_t bin(Coordinate x, std::size_t bins) { return std::size_t(Wide(x) * bins >> 64); }

#endif
