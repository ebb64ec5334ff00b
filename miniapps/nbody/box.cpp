#include "box.hpp"

namespace {

constexpr Wide box = Wide(1) << 64;

/// The interval of this length; all of the box if that is as long.
Interval from(Wide begin, Wide length) {
    if (length >= box) return {};
    return {Coordinate(begin), Coordinate(length), false};
}

} // namespace

Interval aligned(const Interval &interval, int level) {
    if (interval.all) return {};
    const Wide size = cell_size(level), begin = interval.begin / size * size;
    const Wide end = (Wide(interval.begin) + interval.length + size - 1) / size * size;
    return from(begin, end - begin);
}

Interval widened(const Interval &interval, double width) {
    if (interval.all) return {};
    const Coordinate more = length_of(width < 0 ? -width : width);
    if (width >= 0) return from(interval.begin - more, Wide(interval.length) + 2 * Wide(more));
    if (Wide(interval.length) <= 2 * Wide(more)) return {interval.begin, 0, false};
    return {interval.begin + more, interval.length - 2 * more, false};
}
