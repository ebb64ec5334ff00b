// Fields: arrays that are spread over the ranks of an instance.
#ifndef TITIN_FIELD_HPP
#define TITIN_FIELD_HPP

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "titin/array.hpp"
#include "titin/describe.hpp"
#include "titin/message.hpp"

namespace titin {

/// The spread of a dimension over its processes: blocks whose sizes differ by one at most; blocks of ceil(n/p), as BLOCK of HPF;
/// blocks of a given size, dealt out in turn.
enum class Spread { even = TITIN_EVEN, block = TITIN_BLOCK, cyclic = TITIN_CYCLIC };

/// A number for each dimension: {ny, nx} of any integers, or a container of integers.
class PerDimension : public Extents {
public:
    /// One number for each dimension.
    PerDimension(std::initializer_list<One> numbers) : Extents(numbers) {}
    template <class Range, class = decltype(std::begin(std::declval<const Range &>()))>
    PerDimension(const Range &numbers) : Extents(numbers) {}
};

/// How an array is spread over the ranks of an instance. At first rank 0 owns the whole array.
///
///     const auto rows = titin::Decomposition({ny, nx}).grid({instance.ranks(), 1}).halo(1);
///
/// Dimensions and indices count from 0; upper bounds are exclusive. The object is not needed once the fields are made.
class Decomposition {
public:
    /// An array of this shape, of 1 to 7 dimensions.
    explicit Decomposition(const PerDimension &shape)
        : dims_(shape.rank()),
          raw_(detail::check(titin_decomposition_new(shape.rank(), shape.data())), titin_decomposition_free) {}

    /// The number of processes along each dimension, over which the dimension is spread evenly.
    Decomposition &grid(const PerDimension &processes) & {
        each(processes, "processes");
        const std::vector<int> counts(processes.data(), processes.data() + dims_);
        return also(titin_decomposition_grid(raw(), counts.data()));
    }
    Decomposition &&grid(const PerDimension &processes) && { return std::move(grid(processes)); }
    /// Spreads a dimension in another way; `block` is the size of the blocks of Spread::cyclic.
    Decomposition &spread(int dim, Spread how, std::int64_t block = 1) & {
        return also(titin_decomposition_spread(raw(), dim, int(how), block));
    }
    Decomposition &&spread(int dim, Spread how, std::int64_t block = 1) && {
        return std::move(spread(dim, how, block));
    }
    /// Spreads a dimension by bounds: process p has the indices bounds[p] to bounds[p + 1] - 1.
    Decomposition &bounds(int dim, const std::vector<std::int64_t> &bounds) & {
        return also(titin_decomposition_bounds(raw(), dim, int(bounds.size()), bounds.data()));
    }
    Decomposition &&bounds(int dim, const std::vector<std::int64_t> &bounds) && {
        return std::move(this->bounds(dim, bounds));
    }
    /// The order in which ranks count through the grid: Order::C, the default, has the last dimension fastest, as
    /// MPI_Cart_create.
    Decomposition &ranks(Order order) & { return also(titin_decomposition_ranks(raw(), int(order))); }
    Decomposition &&ranks(Order order) && { return std::move(ranks(order)); }
    /// Boxes in place of a rule: the calling rank owns this box, and the boxes of earlier calls. With several boxes the
    /// local array is flat, one box after the other.
    Decomposition &box(const PerDimension &lower, const PerDimension &upper) & {
        each(lower, "lower bounds"), each(upper, "upper bounds");
        return also(titin_decomposition_box(raw(), lower.data(), upper.data()));
    }
    Decomposition &&box(const PerDimension &lower, const PerDimension &upper) && { return std::move(box(lower, upper)); }
    /// Indices in place of a rule: the calling rank owns the elements with these numbers, in this order. Numbers count
    /// through the array in the order of its memory: the last dimension fastest, or the first for Order::Fortran.
    Decomposition &indices(const std::vector<std::int64_t> &numbers) & {
        return also(titin_decomposition_indices(raw(), std::int64_t(numbers.size()), numbers.data()));
    }
    Decomposition &&indices(const std::vector<std::int64_t> &numbers) && { return std::move(indices(numbers)); }
    /// Couples only this region of the array.
    Decomposition &region(const PerDimension &lower, const PerDimension &upper) & {
        each(lower, "lower bounds"), each(upper, "upper bounds");
        return also(titin_decomposition_region(raw(), lower.data(), upper.data()));
    }
    Decomposition &&region(const PerDimension &lower, const PerDimension &upper) && {
        return std::move(region(lower, upper));
    }
    /// The widths of the halo: further elements of the rank's arrays below and above its part, in each dimension.
    Decomposition &halo(const PerDimension &below, const PerDimension &above) & {
        each(below, "halo widths"), each(above, "halo widths");
        return also(titin_decomposition_halo(raw(), below.data(), above.data()));
    }
    Decomposition &&halo(const PerDimension &below, const PerDimension &above) && {
        return std::move(halo(below, above));
    }
    /// The same width everywhere.
    Decomposition &halo(std::int64_t width) & {
        const std::vector<std::int64_t> widths(std::size_t(dims_), width);
        return also(titin_decomposition_halo(raw(), widths.data(), widths.data()));
    }
    Decomposition &&halo(std::int64_t width) && { return std::move(halo(width)); }
    /// The order of elements in memory.
    Decomposition &order(Order order) & { return also(titin_decomposition_order(raw(), int(order))); }
    Decomposition &&order(Order order) && { return std::move(this->order(order)); }

    /// The number of dimensions.
    int dims() const { return dims_; }
    titin_decomposition *raw() const { return raw_.get(); }

private:
    /// Fails unless there is a number for each dimension.
    void each(const PerDimension &numbers, const char *what) const {
        if (numbers.rank() != dims_)
            throw UsageError(std::to_string(numbers.rank()) + " " + what + " were given for an array of " + std::to_string(dims_) +
                             " dimensions: give one for each");
    }
    Decomposition &also(int status) {
        detail::check(status);
        return *this;
    }

    int dims_;
    std::unique_ptr<titin_decomposition, void (*)(titin_decomposition *)> raw_;
};

/// The simulated time of a field, and of the next field.
struct Stamps {
    double timestamp;
    std::optional<double> next_timestamp;

    /// Whether a field was received: where the description couples nothing at a step (titin: fields) nothing is written.
    bool coupled() const { return !std::isnan(timestamp); }
};

/// Arrays spread over the ranks of an instance, which travel together by one of its ports; made by Instance::field.
///
/// Each call takes all arrays of the field, in order: pointers, arrays as for Instance::send (std::vector, std::array,
/// std::span, mdspan, T[n][m], Span), or containers of these. The types of elements must be those of the field. An argument
/// with as many dimensions as the field brings its extents, strides and order; a flat argument has to be long enough. All
/// ranks make these calls together.
class Field {
public:
    /// Made by Instance::field.
    Field(titin_port *port, const Decomposition &decomposition, const std::vector<int> &dtypes)
        : dims_(decomposition.dims()), dtypes_(dtypes), said_(dtypes.size()), raw_(nullptr, titin_field_free) {
        titin_field *field;
        detail::check(titin_field_new(port, decomposition.raw(), int(dtypes.size()), dtypes.data(), &field));
        raw_.reset(field);
        port_ = titin_port_name(port);
    }

    /// The number of arrays.
    int arrays() const { return int(dtypes_.size()); }
    /// Bytes and elements of an array on this rank, with the halo.
    std::int64_t bytes(int array = 0) const {
        known(array);
        return titin_field_bytes(raw(), array);
    }
    std::int64_t elements(int array = 0) const { return bytes(array) / titin_dtype_size(known(array)); }
    /// The extents of an array on this rank, with the halo. Throws UsageError where arrays are flat, because the rank has
    /// several boxes, or indices of more than one dimension.
    std::vector<std::int64_t> extents() const {
        std::vector<std::int64_t> extents(static_cast<std::size_t>(dims_));
        detail::check(titin_field_extents(raw(), extents.data()));
        return extents;
    }
    /// The indices of the whole array that this rank owns along a dimension: element (i, j) of the rank's part, without the
    /// halo, is element (owned(0)[i], owned(1)[j]) of the whole. Throws like extents.
    std::vector<std::int64_t> owned(int dim) const {
        const std::int64_t count = titin_field_owned(raw(), dim, nullptr);
        if (count < 0) detail::check(titin_error_kind());
        std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
        titin_field_owned(raw(), dim, indices.data());
        return indices;
    }
    /// The layout of an array in memory, if its elements do not lie one after the other: extents on this rank, with the
    /// halo, and strides in elements, which may be negative. Calls that send or receive then take the pointer to the first
    /// element. The layout holds until the next call of layout.
    void layout(int array, const PerDimension &extents, const PerDimension &strides) {
        const std::int64_t size = titin_dtype_size(known(array));
        Extents steps;
        for (int i = 0; i < strides.rank(); ++i) steps.push(strides[i] * size);
        lay(array, extents, steps);
        said_[std::size_t(array)] = false;
    }

    /// Sends this rank's part of each array, to the receivers that the description couples at this step (titin: fields).
    /// For a receiver that pulls, titin keeps a version. Returns when the arrays may be changed.
    template <class First, class... Rest, class = std::enable_if_t<!std::is_arithmetic_v<First>>>
    void send(double timestamp, const First &first, const Rest &...rest) {
        send(timestamp, TITIN_NO_NEXT, first, rest...);
    }
    /// The same with the next timestamp.
    template <class First, class... Rest, class = std::enable_if_t<!std::is_arithmetic_v<First>>>
    void send(double timestamp, double next_timestamp, const First &first, const Rest &...rest) {
        static_assert(detail::is_array_or_several<First>() && (... && detail::is_array_or_several<Rest>()),
                      "arrays of a field are pointers, std::vector, std::array, spans, T[n], titin::Span, or containers of "
                      "these. std::vector<bool> keeps bits, and std::list has its elements apart");
        const std::vector<void *> pointers = gather(first, rest...);
        detail::check(titin_field_send(raw(), pointers.data(), timestamp, next_timestamp));
    }
    /// Receives this rank's part into each array, and writes no other element. Of a field that is pulled, the call receives
    /// the latest version. Gives the timestamps.
    template <class First, class... Rest>
    Stamps receive(First &&first, Rest &&...rest) {
        detail::receivable<First, true>(), (detail::receivable<Rest, true>(), ...);
        return receive_within(std::nullopt, TITIN_WAIT, first, rest...);
    }
    /// The same; throws Timeout after the time given. A part of the field may have come by then: make the call again with the same
    /// arrays. In an instance of several ranks the timeout is for the announcement by rank 0 of the sender.
    template <class Rep, class Period, class... Arrays>
    Stamps receive(std::chrono::duration<Rep, Period> timeout, Arrays &&...arrays) {
        (detail::receivable<Arrays, true>(), ...);
        return receive_within(std::nullopt, std::chrono::duration<double>(timeout).count(), arrays...);
    }
    /// Receives the version at or before a simulated time of a field that is pulled; waits until the sender has passed that
    /// time. Throws Evicted if the version is not kept, and PortClosed if no version of that time will come.
    template <class First, class... Rest>
    Stamps receive_at(double at, First &&first, Rest &&...rest) {
        detail::receivable<First, true>(), (detail::receivable<Rest, true>(), ...);
        return receive_within(at, TITIN_WAIT, first, rest...);
    }
    /// The same; throws Timeout after the time given.
    template <class Rep, class Period, class... Arrays>
    Stamps receive_at(double at, std::chrono::duration<Rep, Period> timeout, Arrays &&...arrays) {
        (detail::receivable<Arrays, true>(), ...);
        return receive_within(at, std::chrono::duration<double>(timeout).count(), arrays...);
    }
    /// For the sender: no more fields follow, and all versions are given up. The port of the receivers is closed.
    void withdraw() { detail::check(titin_field_withdraw(raw())); }

    titin_field *raw() const {
        if (!raw_) throw UsageError("this field was moved from");
        return raw_.get();
    }

private:
    template <class... Arrays>
    Stamps receive_within(std::optional<double> at, double timeout, Arrays &...arrays) {
        static_assert((... && writable<Arrays>()), "these data are const, or of a message that others may share");
        const std::vector<void *> pointers = gather(arrays...);
        double timestamp, next;
        detail::check(at ? titin_field_receive_at(raw(), pointers.data(), *at, timeout, &timestamp, &next)
                         : titin_field_receive(raw(), pointers.data(), timeout, &timestamp, &next));
        return {timestamp, next == TITIN_NO_NEXT ? std::nullopt : std::optional<double>(next)};
    }
    template <class T>
    static constexpr bool writable() {
        if constexpr (std::is_pointer_v<T>) return !std::is_const_v<std::remove_pointer_t<T>>;
        else if constexpr (detail::IsArray<T>::value) return detail::is_writable<T>();
        // The caller has refused types that are no arrays.
        else if constexpr (!detail::is_array_or_several<T>()) return true;
        else return writable<std::remove_reference_t<decltype(*std::begin(std::declval<T &>()))>>();
    }
    template <class... Arrays>
    std::vector<void *> gather(Arrays &...arrays) {
        std::vector<void *> pointers;
        (add(pointers, arrays), ...);
        if (pointers.size() != dtypes_.size())
            throw UsageError(named() + "it has " + std::to_string(dtypes_.size()) + " arrays, and " +
                             std::to_string(pointers.size()) + " were given");
        return pointers;
    }
    template <class T>
    void add(std::vector<void *> &pointers, T &given) {
        if constexpr (std::is_pointer_v<T>) {
            using Scalar = typename detail::Element<std::remove_pointer_t<T>>::Scalar;
            is(int(pointers.size()), detail::known_dtype<Scalar>());
            forget(int(pointers.size()));
            pointers.push_back(const_cast<Scalar *>(reinterpret_cast<const Scalar *>(given)));
        } else if constexpr (detail::IsArray<T>::value) {
            const detail::Array array = detail::describe(given);
            const int number = int(pointers.size());
            is(number, array.dtype);
            if (array.extents.rank() > 1 && array.extents.rank() != dims_)
                throw UsageError(named(number) + " has " + std::to_string(dims_) + " dimensions, but one of " +
                                 std::to_string(array.extents.rank()) + " was given");
            const bool says = array.strided || (dims_ > 1 && array.extents.rank() == dims_);
            if (says) lay(number, array.extents, steps(array));
            else {
                forget(number);
                fits(number, array.extents.elements() * titin_dtype_size(array.dtype));
            }
            said_[std::size_t(number)] = says;
            pointers.push_back(const_cast<void *>(array.data));
        } else if constexpr (detail::is_array_or_several<T>()) {
            for (auto &one : given) add(pointers, one);
        }
    }
    /// Forgets a layout that came with an array of an earlier call.
    void forget(int array) {
        if (said_[std::size_t(array)]) detail::check(titin_field_layout(raw(), array, nullptr, nullptr));
        said_[std::size_t(array)] = false;
    }
    /// Fails unless the field has this array, of this type of element.
    void is(int array, int dtype) const {
        const int wanted = known(array);
        if (dtype != wanted)
            throw TypeMismatch(named(array) + " is of " + titin_dtype_name(wanted) + ", but one of " +
                               titin_dtype_name(dtype) + " was given");
    }
    void fits(int array, std::int64_t given) const {
        const std::int64_t wanted = bytes(array);
        if (given < wanted)
            throw UsageError(named(array) + " has " + std::to_string(wanted) +
                             " bytes on this rank, halo and all, but one of " + std::to_string(given) + " was given");
    }
    /// The strides of an array in bytes.
    static Extents steps(const detail::Array &array) {
        const int rank = array.extents.rank();
        std::vector<std::int64_t> strides(array.strides, array.strides + (array.strided ? rank : 0));
        strides.resize(std::size_t(rank));
        std::int64_t next = titin_dtype_size(array.dtype);
        for (int step = 0; step < rank && !array.strided; ++step) {
            const int i = array.order == TITIN_ORDER_C ? rank - 1 - step : step;
            strides[std::size_t(i)] = next;
            next *= array.extents[i];
        }
        return Extents(strides);
    }
    void lay(int array, const Extents &extents, const Extents &strides) {
        if (extents.rank() != dims_ || strides.rank() != dims_)
            throw UsageError(named(array) + " has " + std::to_string(dims_) + " dimensions; it was given " +
                             std::to_string(extents.rank()) + " extents and " + std::to_string(strides.rank()) +
                             " strides");
        detail::check(titin_field_layout(raw(), array, extents.data(), strides.data()));
    }
    /// The type of an array's elements.
    int known(int array) const {
        raw();
        if (array < 0 || array >= arrays())
            throw UsageError(named() + "there is no array " + std::to_string(array) + ": it has " +
                             std::to_string(arrays()) + ", which count from 0");
        return dtypes_[std::size_t(array)];
    }
    /// The field, and an array of it, as errors name them.
    std::string named() const { return "field on port '" + port_ + "': "; }
    std::string named(int array) const {
        if (array == 0 && arrays() == 1) return named() + "its array";
        return named() + "array " + std::to_string(array) + " of its " + std::to_string(arrays()) + ", which count from 0,";
    }

    std::string port_;
    int dims_;
    std::vector<int> dtypes_;
    /// Whether the layout of an array came with an argument of a call.
    std::vector<bool> said_;
    std::unique_ptr<titin_field, void (*)(titin_field *)> raw_;
};

} // namespace titin

#endif
