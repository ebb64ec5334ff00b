// Sends arrays of every type and size to a program that sends them back, and compares each byte.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <muscle2/complex_data.hpp>
#include <muscle2/cppmuscle.hpp>
#include <vector>

using namespace muscle;

static int failures = 0;

static void expect(bool right, const char *what, size_t size) {
    if (!right) std::printf("wrong: %s of %lu\n", what, static_cast<unsigned long>(size));
    failures += !right;
}

static void *there_and_back(const void *data, size_t &count, muscle_datatype_t type) {
    const int number = type;
    env::send("type", &number, 1, MUSCLE_INT32);
    env::send("out", data, count, type);
    return env::receive("in", static_cast<void *>(0), count, type);
}

static void simple(const char *name, muscle_datatype_t type, size_t element, size_t size) {
    std::vector<unsigned char> bytes(size * element + 1);
    for (size_t i = 0; i < size * element; ++i)
        bytes[i] = static_cast<unsigned char>(type == MUSCLE_BOOLEAN ? std::rand() & 1 : std::rand());
    size_t count = size;
    void *back = there_and_back(&bytes[0], count, type);
    expect(count == size && std::memcmp(back, &bytes[0], size * element) == 0, name, size);
    env::free_data(back, type);
}

static void text(const std::string &sent) {
    size_t count = sent.size() + 1;
    char *back = static_cast<char *>(there_and_back(sent.c_str(), count, MUSCLE_STRING));
    expect(count == sent.size() + 1 && sent == back, "text", sent.size());
    env::free_data(back, MUSCLE_STRING);
}

static void shaped(muscle_complex_t type, const std::vector<int> &shape) {
    std::vector<int> dims(shape);
    ComplexData data(type, dims.empty() ? 0 : &dims);
    unsigned char *bytes = static_cast<unsigned char *>(data.getData());
    const size_t size = data.length() * data.sizeOfPrimitive();
    const bool flags = ComplexData::sizeOfPrimitive(type) == 1 && (type == COMPLEX_BOOLEAN || type == COMPLEX_BOOLEAN_ARR ||
        type == COMPLEX_BOOLEAN_MATRIX_2D || type == COMPLEX_BOOLEAN_MATRIX_3D || type == COMPLEX_BOOLEAN_MATRIX_4D);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(flags ? std::rand() & 1 : std::rand());
    size_t count = data.length();
    ComplexData *back = static_cast<ComplexData *>(there_and_back(&data, count, MUSCLE_COMPLEX));
    expect(count == data.length() && back->getType() == type && back->getDimensions() == shape &&
               std::memcmp(back->getData(), bytes, size) == 0,
           "complex data", static_cast<size_t>(type));
    if (shape.size() == 3)
        expect(back->index(1, 2, 1) == data.fidx(1, 2, 1) && back->fidx(0, 0, 1) == 1, "index", 3);
    env::free_data(back, MUSCLE_COMPLEX);
}

int main(int argc, char **argv) {
    env::init(&argc, &argv);
    const size_t sizes[] = {0, 1, 3, 50, 1024, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        simple("raw", MUSCLE_RAW, 1, sizes[i]);
        simple("boolean", MUSCLE_BOOLEAN, 1, sizes[i]);
        simple("int32", MUSCLE_INT32, 4, sizes[i]);
        simple("int64", MUSCLE_INT64, 8, sizes[i]);
        simple("float", MUSCLE_FLOAT, 4, sizes[i]);
        simple("double", MUSCLE_DOUBLE, 8, sizes[i]);
    }
    text("");
    text("some simple");
    text(std::string(65536, '.') + "\xc3\xa9");
    const int first[] = {COMPLEX_BOOLEAN, COMPLEX_BOOLEAN_ARR, COMPLEX_BOOLEAN_MATRIX_2D, COMPLEX_BOOLEAN_MATRIX_3D,
                         COMPLEX_BOOLEAN_MATRIX_4D};
    std::vector<int> shape;
    for (int rank = 0; rank < 5; ++rank) {
        for (int place = 0; place < 7; ++place)
            // A byte array has the type that MUSCLE_RAW has.
            shaped(static_cast<muscle_complex_t>(first[rank] + place), shape);
        shape.push_back(rank + 2);
    }
    const int done = -1;
    env::send("type", &done, 1, MUSCLE_INT32);
    std::printf("%s\n", failures ? "some tests failed" : "tests passed");
    env::finalize();
    return failures != 0;
}
