// Calls that are wrong, one in each run: the first argument says which. The text of the error is printed.
#include <cstdio>
#include <muscle2/cppmuscle.hpp>

using namespace muscle;

static void wrong(const std::string &which) {
    size_t count = 2;
    double two[2] = {1, 2};
    env::finalize(); // nothing to do yet
    if (which == "before") env::send("out", two, 2, MUSCLE_DOUBLE);
    int argc = 0;
    char **argv = 0;
    env::init(&argc, &argv);
    env::send("out", two, 2, MUSCLE_DOUBLE);
    if (which == "twice") env::init(&argc, &argv);
    if (which == "port") env::send("uot", two, 2, MUSCLE_DOUBLE);
    if (which == "way") env::send("in", two, 2, MUSCLE_DOUBLE);
    if (which == "property") cxa::get_property("unknown");
    if (which == "another") cxa::get_property("pee:k");
    if (which == "type") env::receive("in", two, count, MUSCLE_INT32);
    if (which == "number") env::receive("in", two, count, static_cast<muscle_datatype_t>(17));
    if (which == "room") env::receive("in", two, count = 1, MUSCLE_DOUBLE);
    if (which == "text") env::send("out", "\xff\xfe", 3, MUSCLE_STRING);
    if (which == "map") {
        std::vector<int> dims(1, 1);
        ComplexData map(COMPLEX_MAP, &dims);
        env::send("out", &map, 1, MUSCLE_COMPLEX);
    }
    if (which == "matrix") {
        std::vector<int> dims(1, 3);
        ComplexData matrix(COMPLEX_DOUBLE_MATRIX_2D, &dims);
    }
    if (which == "huge") {
        std::vector<int> dims(4, 65536); // 2^64 elements
        ComplexData matrix(COMPLEX_BYTE_MATRIX_4D, &dims);
    }
    if (which == "place") {
        std::vector<int> dims(2, 65536);
        ComplexData matrix(COMPLEX_BYTE_MATRIX_2D, &dims);
        matrix.index(32768, 0);
    }
    if (which == "nowhere") {
        std::vector<int> dims(1, 3);
        ComplexData array(0, COMPLEX_DOUBLE_ARR, &dims);
        env::send("out", &array, 3, MUSCLE_COMPLEX);
    }
    if (which == "no_text") {
        ComplexData text(0, COMPLEX_STRING, 0);
        env::send("out", &text, 1, MUSCLE_COMPLEX);
    }
    if (which == "barrier") throw muscle_exception(env::barrier("x") ? "no barrier" : "a barrier");
    if (which == "stop") env::will_stop();
    if (which == "closed") {
        env::receive("in", two, count, MUSCLE_DOUBLE);
        env::receive("in", two, count, MUSCLE_DOUBLE);
    }
    if (which == "after") {
        env::receive("in", two, count, MUSCLE_DOUBLE);
        env::finalize();
        env::has_next("in");
    }
    if (which == "again") {
        env::receive("in", two, count, MUSCLE_DOUBLE);
        env::finalize();
        env::init(&argc, &argv);
    }
}

int main(int argc, char **argv) {
    try {
        wrong(argc > 1 ? argv[1] : "");
    } catch (const muscle_exception &error) {
        std::printf("muscle_exception: %s\n", error.what());
    } catch (const std::exception &error) {
        std::printf("exception: %s\n", error.what());
    }
    std::fflush(stdout);
    env::finalize();
    return 3;
}
