// Sends back what comes, with the type that a message before it names: the other half of a test of all types.
#include <muscle2/cppmuscle.hpp>

int main(int argc, char **argv) {
    try {
        muscle::env::init(&argc, &argv);
        for (;;) {
            int type = 0;
            size_t count = 1;
            muscle::env::receive("type", &type, count, MUSCLE_INT32);
            if (type < 0) break;
            const muscle_datatype_t datatype = static_cast<muscle_datatype_t>(type);
            void *data = muscle::env::receive("in", static_cast<void *>(0), count, datatype);
            muscle::env::send("out", data, count, datatype);
            muscle::env::free_data(data, datatype);
        }
        muscle::env::finalize();
    } catch (const std::exception &error) {
        muscle::logger::severe("the bounce has failed: %s", error.what());
        throw;
    }
    return 0;
}
