// Receives on a port until its sender has finished.
#include <cstdio>
#include <muscle2/cppmuscle.hpp>

int main(int argc, char **argv) {
    muscle::env::init(&argc, &argv);
    while (muscle::env::has_next("in")) {
        muscle::env::has_next("in"); // asking twice loses nothing
        size_t count;
        float *data = static_cast<float *>(muscle::env::receive("in", static_cast<void *>(0), count, MUSCLE_FLOAT));
        std::printf("%lu %g k=%s\n", static_cast<unsigned long>(count), static_cast<double>(data[0]),
                    muscle::cxa::get_property("k").c_str());
        if (argc > 1) muscle::env::send("out", data, count, MUSCLE_FLOAT);
        muscle::env::free_data(data, MUSCLE_FLOAT);
    }
    muscle::env::finalize();
}
