// Memory for grids: lent by titin where an instance is open, so that a grid is copied once on its way to the receiver.
#ifndef TITIN_LIBMUSCLE_DETAIL_LOAN_HPP
#define TITIN_LIBMUSCLE_DETAIL_LOAN_HPP

#include <cstddef>
#include <cstring>
#include <memory>

#include <titin.h>

#include "libmuscle/detail/node.hpp"
#include "libmuscle/detail/value.hpp"

namespace libmuscle {
namespace detail {

/// A port of the process's open instance that sends; nullptr without one. Any port lends memory for all.
inline titin_port *&lending_port() {
    static titin_port *port = nullptr;
    return port;
}

/// From this number of bytes on, a second copy costs more than asking for a loan.
constexpr std::size_t worth_lending = 64 * 1024;

/// A grid with a copy of these elements.
inline NodePtr new_grid(int dtype, std::size_t element_size, const void *elements, const std::vector<std::size_t> &shape,
                        const std::vector<std::string> &names, StorageOrder order) {
    const NodePtr node = new_node<Grid>(Kind::grid, dtype, shape, order, names, nullptr, nullptr, nullptr);
    Grid &grid = node->as<Grid>();
    const std::size_t bytes = grid.size() * element_size;
    void *copy = nullptr;
    if (lending_port() && bytes >= worth_lending) {
        const Layout layout(grid);
        titin_loan *loan;
        // Without memory to lend the grid lives on the heap.
        if (titin_loan_new(lending_port(), TITIN_NO_SLOT, dtype, layout.rank(), layout.extents.data(), order_of(grid),
                           layout.index_names(), &loan) == 0) {
            grid.owner = std::shared_ptr<titin_loan>(loan, titin_loan_free);
            grid.loan = loan;
            copy = titin_loan_data(loan);
        }
    }
    if (!copy) {
        std::shared_ptr<char> heap(new char[bytes ? bytes : 1], std::default_delete<char[]>());
        copy = heap.get();
        grid.owner = std::move(heap);
    }
    if (bytes) std::memcpy(copy, elements, bytes);
    grid.elements = copy;
    return node;
}

} // namespace detail
} // namespace libmuscle

#endif
