// Loans: memory of titin for an array that is sent without a copy.
#ifndef TITIN_LOAN_HPP
#define TITIN_LOAN_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "titin/array.hpp"
#include "titin/port.hpp"

namespace titin {

/// Memory for an array, from Instance::loan: fill the memory, then `send("out", std::move(loan), t)`. Nothing is copied;
/// receivers on this host read the memory itself. A loan that was sent or moved from is empty, and using the loan is an
/// error. The elements have any values at first.
template <class T>
class Loan {
public:
    /// The type of the elements.
    using value_type = T;

    /// Made by Instance::loan.
    Loan(titin_loan *loan, const Extents &extents, Order order)
        : loan_(loan), data_(static_cast<T *>(detail::check(titin_loan_data(loan)))), extents_(extents), order_(order) {}
    Loan(Loan &&other) noexcept
        : loan_(std::exchange(other.loan_, nullptr)), data_(std::exchange(other.data_, nullptr)),
          extents_(other.extents_), order_(other.order_) {}
    Loan &operator=(Loan &&other) noexcept {
        std::swap(loan_, other.loan_);
        std::swap(data_, other.data_);
        std::swap(extents_, other.extents_);
        std::swap(order_, other.order_);
        return *this;
    }
    ~Loan() { titin_loan_free(loan_); }

    /// Whether the loan has memory: false once the loan was sent or moved from.
    explicit operator bool() const { return loan_ != nullptr; }
    /// The memory; the number of dimensions, their extents and order; the number of elements.
    T *data() const { return there().data_; }
    int rank() const { return extents_.rank(); }
    std::int64_t extent(int dimension) const { return extents_[dimension]; }
    const Extents &extents() const { return extents_; }
    Order order() const { return order_; }
    std::size_t size() const { return std::size_t(extents_.elements()); }
    /// Elements in the order of memory.
    T *begin() const { return data(); }
    T *end() const { return data() + size(); }
    T &operator[](std::size_t index) const { return data()[index]; }
    /// The element at an index per dimension, from 0, in either order of memory.
    template <class... Index>
    T &operator()(Index... index) const {
        return const_cast<T &>(View<const T>(data(), extents_, order_)(index...));
    }
    /// The memory for calls that take an array of the program, such as receive_into.
    Span<T> span() const { return Span<T>(data(), extents_, order_); }

    titin_loan *raw() const { return there().loan_; }

private:
    friend class Instance;

    const Loan &there() const {
        if (!loan_) throw UsageError("this loan is empty: it was sent or moved from; ask for another one");
        return *this;
    }

    titin_loan *loan_;
    T *data_;
    Extents extents_;
    Order order_;
};

namespace detail {
template <class T>
struct IsLoan : std::false_type {};
template <class T>
struct IsLoan<Loan<T>> : std::true_type {};
} // namespace detail

} // namespace titin

#endif
