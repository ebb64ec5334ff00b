// Sends back each ComplexData as it has come, with its type and dimensions; of what has no type, the error.
#include <cstdio>
#include <muscle2/complex_data.hpp>
#include <muscle2/cppmuscle.hpp>

using namespace muscle;

static void answer(const ComplexData *data) {
    const std::vector<int> dims = data->getDimensions();
    char text[80];
    int length = std::sprintf(text, "%d", static_cast<int>(data->getType()));
    for (size_t i = 0; i < dims.size(); ++i) length += std::sprintf(text + length, " %d", dims[i]);
    env::send("what", text, static_cast<size_t>(length) + 1, MUSCLE_STRING);
    env::send("back", data, data->length(), MUSCLE_COMPLEX);
}

int main(int argc, char **argv) {
    env::init(&argc, &argv);
    while (env::has_next("in")) {
        size_t count = 0;
        try {
            ComplexData *data = static_cast<ComplexData *>(env::receive("in", 0, count, MUSCLE_COMPLEX));
            answer(data);
            env::free_data(data, MUSCLE_COMPLEX);
        } catch (const muscle_exception &error) {
            env::send("what", error.what(), std::strlen(error.what()) + 1, MUSCLE_STRING);
        }
    }
    env::finalize();
    return 0;
}
