#include "domain.hpp"

#include <algorithm>
#include <numeric>

namespace {

constexpr Wide box = Wide(1) << 64;

} // namespace

Cuts::Cuts(std::vector<int> shares) : shares_(std::move(shares)) {
    const Wide all = Wide(std::accumulate(shares_.begin(), shares_.end(), 0ll));
    Wide before = 0;
    for (int share : shares_) {
        begins_.push_back(Coordinate(before * (box / all)));
        before += Wide(share);
    }
}

Interval Cuts::domain(int i) const {
    if (count() == 1) return {};
    const Coordinate end = i + 1 < count() ? begins_[i + 1] : 0;
    return {begins_[i], end - begins_[i], false};
}

void Cuts::follow(const Histogram &work, double most, double least) {
    const Wide all = std::accumulate(work.begin(), work.end(), Wide(0));
    const Wide shares = Wide(std::accumulate(shares_.begin(), shares_.end(), 0ll));
    if (all == 0) return;
    const Wide step = length_of(most), width = length_of(least);
    Wide before = 0, share = 0;
    std::size_t b = 0;
    for (int i = 1; i < count(); i++) {
        share += Wide(shares_[i - 1]);
        const Wide wanted = all * share / shares;
        while (b + 1 < work.size() && before + work[b] <= wanted) before += work[b++];
        // Within its bin the work is spread evenly.
        const Wide within = work[b] ? ((wanted - before) << 64) / work[b] : 0;
        Wide cut = ((Wide(b) << 64) + std::min(within, box - 1)) / work.size();
        const Wide now = begins_[i];
        cut = std::max(now - std::min(now, step), std::min(cut, now + step));
        // Room for the domains on both sides.
        cut = std::max(cut, Wide(begins_[i - 1]) + width);
        cut = std::min(cut, box - width * Wide(count() - i));
        begins_[i] = Coordinate(cut);
    }
}
