// Arrays with up to four dimensions, and single numbers, as messages.
#ifndef TITIN_MUSCLE2_COMPLEX_DATA_HPP
#define TITIN_MUSCLE2_COMPLEX_DATA_HPP

#include <climits>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "detail/core.h"
#include "muscle_types.h"

/// What a ComplexData holds, with MUSCLE 2's numbers.
typedef enum {
    COMPLEX_NULL = 0,
    COMPLEX_MAP,
    COMPLEX_COLLECTION,
    COMPLEX_STRING,
    COMPLEX_BOOLEAN,
    COMPLEX_BYTE,
    COMPLEX_SHORT,
    COMPLEX_INT,
    COMPLEX_LONG,
    COMPLEX_FLOAT,
    COMPLEX_DOUBLE,
    COMPLEX_STRING_ARR,
    COMPLEX_BOOLEAN_ARR,
    COMPLEX_BYTE_ARR,
    COMPLEX_SHORT_ARR,
    COMPLEX_INT_ARR,
    COMPLEX_LONG_ARR,
    COMPLEX_FLOAT_ARR,
    COMPLEX_DOUBLE_ARR,
    COMPLEX_BOOLEAN_MATRIX_2D,
    COMPLEX_BYTE_MATRIX_2D,
    COMPLEX_SHORT_MATRIX_2D,
    COMPLEX_INT_MATRIX_2D,
    COMPLEX_LONG_MATRIX_2D,
    COMPLEX_FLOAT_MATRIX_2D,
    COMPLEX_DOUBLE_MATRIX_2D,
    COMPLEX_BOOLEAN_MATRIX_3D,
    COMPLEX_BYTE_MATRIX_3D,
    COMPLEX_SHORT_MATRIX_3D,
    COMPLEX_INT_MATRIX_3D,
    COMPLEX_LONG_MATRIX_3D,
    COMPLEX_FLOAT_MATRIX_3D,
    COMPLEX_DOUBLE_MATRIX_3D,
    COMPLEX_BOOLEAN_MATRIX_4D,
    COMPLEX_BYTE_MATRIX_4D,
    COMPLEX_SHORT_MATRIX_4D,
    COMPLEX_INT_MATRIX_4D,
    COMPLEX_LONG_MATRIX_4D,
    COMPLEX_FLOAT_MATRIX_4D,
    COMPLEX_DOUBLE_MATRIX_4D,
    COMPLEX_JAVA_BYTE_OBJECT
} muscle_complex_t;

namespace muscle {
namespace detail {

/// The element types in the order of muscle_complex_t: boolean, byte, short, int, long, float, double.
inline int element(int place) {
    static const int elements[] = {TITIN_BOOL, TITIN_I8, TITIN_I16, TITIN_I32, TITIN_I64, TITIN_F32, TITIN_F64};
    return elements[place];
}

/// The dimensions of a type: 0 for single values, 1 for arrays, 2 to 4 for matrices.
inline int rank(muscle_complex_t type) {
    if (type >= COMPLEX_BOOLEAN_MATRIX_4D && type < COMPLEX_JAVA_BYTE_OBJECT) return 4;
    if (type >= COMPLEX_BOOLEAN_MATRIX_3D && type < COMPLEX_BOOLEAN_MATRIX_4D) return 3;
    if (type >= COMPLEX_BOOLEAN_MATRIX_2D && type < COMPLEX_BOOLEAN_MATRIX_3D) return 2;
    if (type == COMPLEX_NULL || (type >= COMPLEX_STRING && type <= COMPLEX_DOUBLE)) return 0;
    return 1;
}

/// The element type of titin; 0 for types without numbers.
inline int dtype(muscle_complex_t type) {
    if (type >= COMPLEX_BOOLEAN_MATRIX_2D && type < COMPLEX_JAVA_BYTE_OBJECT)
        return element((type - COMPLEX_BOOLEAN_MATRIX_2D) % 7);
    if (type >= COMPLEX_BOOLEAN_ARR && type <= COMPLEX_DOUBLE_ARR) return element(type - COMPLEX_BOOLEAN_ARR);
    if (type >= COMPLEX_BOOLEAN && type <= COMPLEX_DOUBLE) return element(type - COMPLEX_BOOLEAN);
    return 0;
}

/// The type for an array of titin. Returns false if MUSCLE 2 has none.
inline bool complex_of(int dtype, int rank, muscle_complex_t &type) {
    static const int first[] = {COMPLEX_BOOLEAN, COMPLEX_BOOLEAN_ARR, COMPLEX_BOOLEAN_MATRIX_2D, COMPLEX_BOOLEAN_MATRIX_3D,
                                COMPLEX_BOOLEAN_MATRIX_4D};
    if (rank > 4) return false;
    if (dtype == TITIN_U8) dtype = TITIN_I8; // a byte is a byte
    for (int place = 0; place < 7; ++place)
        if (element(place) == dtype) {
            type = static_cast<muscle_complex_t>(first[rank] + place);
            return true;
        }
    return false;
}

} // namespace detail

/// A value with its type and shape; elements are in C order. It owns its memory, which comes from malloc. Copies are refused.
class ComplexData {
public:
    /// Elements of this type and shape, with any values at first; a text is empty.
    ComplexData(muscle_complex_t kind, std::vector<int> *dimensions) : type(kind), value(0) {
        set_dimensions(dimensions);
        const size_t bytes = length() * sizeOfPrimitive();
        value = std::malloc(bytes + 1);
        if (!value) throw std::bad_alloc();
        static_cast<char *>(value)[bytes] = '\0';
    }
    /// Takes over memory from malloc. Single values need no dimensions.
    ComplexData(void *data, muscle_complex_t kind, std::vector<int> *dimensions) : type(kind), value(data) {
        set_dimensions(dimensions);
    }
    /// Takes over an array of a simple type.
    ComplexData(void *data, muscle_datatype_t simple, size_t elements) : type(getType(simple)), value(data) {
        if (elements > static_cast<size_t>(INT_MAX))
            throw std::length_error("a ComplexData has up to 2^31 - 1 elements along a dimension");
        if (dimensions(type) == 1) dims.push_back(static_cast<int>(elements));
    }
    ~ComplexData() { std::free(value); }

    void *getData() { return value; }
    const void *getData() const { return value; }
    muscle_complex_t getType() const { return type; }
    std::vector<int> getDimensions() const { return dims; }
    /// The number of elements, 1 for a single value.
    size_t length() const {
        size_t product = 1;
        for (size_t i = 0; i < dims.size(); ++i) product *= static_cast<size_t>(dims[i]);
        return product;
    }
    /// Bytes of an element.
    size_t sizeOfPrimitive() const { return sizeOfPrimitive(type); }

    /// The place of an element, checked: std::logic_error for another number of dimensions, std::range_error outside, or
    /// from 2^31 on.
    int index(int x, int y) const {
        const int at[] = {x, y};
        check(at, 2);
        return fidx(x, y);
    }
    int index(int x, int y, int z) const {
        const int at[] = {x, y, z};
        check(at, 3);
        return fidx(x, y, z);
    }
    int index(int x, int y, int z, int zz) const {
        const int at[] = {x, y, z, zz};
        check(at, 4);
        return fidx(x, y, z, zz);
    }
    /// The same without a check.
    int fidx(int x, int y) const { return x * dims[1] + y; }
    int fidx(int x, int y, int z) const { return fidx(x, y) * dims[2] + z; }
    int fidx(int x, int y, int z, int zz) const { return fidx(x, y, z) * dims[3] + zz; }

    static size_t sizeOfPrimitive(muscle_complex_t kind) {
        switch (detail::dtype(kind)) {
        case TITIN_BOOL:
        case TITIN_I8: return 1;
        case TITIN_I16: return 2;
        case TITIN_I32:
        case TITIN_F32: return 4;
        case TITIN_I64:
        case TITIN_F64: return 8;
        default: return kind == COMPLEX_JAVA_BYTE_OBJECT ? 1 : 0;
        }
    }
    static int dimensions(muscle_complex_t kind) { return detail::rank(kind); }
    static muscle_complex_t getType(muscle_datatype_t simple) {
        static const muscle_complex_t types[] = {COMPLEX_DOUBLE_ARR, COMPLEX_FLOAT_ARR,   COMPLEX_INT_ARR, COMPLEX_LONG_ARR,
                                                 COMPLEX_STRING,     COMPLEX_BOOLEAN_ARR, COMPLEX_BYTE_ARR};
        if (simple < MUSCLE_DOUBLE || simple > MUSCLE_RAW)
            throw std::invalid_argument("a ComplexData of a ComplexData is not possible");
        return types[simple];
    }

private:
    ComplexData(const ComplexData &);
    ComplexData &operator=(const ComplexData &);

    void set_dimensions(const std::vector<int> *dimensions) {
        if (dimensions) dims = *dimensions;
        const size_t most = static_cast<size_t>(-1) / 16;
        size_t elements = 1;
        for (size_t i = 0; i < dims.size(); ++i) {
            if (dims[i] < 0) throw std::invalid_argument("a ComplexData has a dimension below 0");
            const size_t extent = static_cast<size_t>(dims[i]);
            if (extent && elements > most / extent)
                throw std::length_error("a ComplexData has more elements than memory can have");
            elements *= extent;
        }
        if (static_cast<int>(dims.size()) != detail::rank(type))
            throw std::invalid_argument("a ComplexData has " + std::string(1, static_cast<char>('0' + dims.size() % 10)) +
                                        " dimensions, and its type has " +
                                        std::string(1, static_cast<char>('0' + detail::rank(type))));
    }
    void check(const int *at, int count) const {
        if (count != detail::rank(type) || count < 2)
            throw std::logic_error("the index of a ComplexData has another number of dimensions than the data");
        size_t place = 0;
        for (int i = 0; i < count; ++i) {
            const int extent = dims[static_cast<size_t>(i)];
            if (at[i] < 0 || at[i] >= extent) throw std::range_error("an index of a ComplexData is outside of the data");
            place = place * static_cast<size_t>(extent) + static_cast<size_t>(at[i]);
        }
        if (place > static_cast<size_t>(INT_MAX))
            throw std::range_error("the place of an element of a ComplexData is larger than an int");
    }

    muscle_complex_t type;
    void *value;
    std::vector<int> dims;
};

} // namespace muscle

#endif
