// Many instances on a few threads: the script of light.c.
#include <chrono>
#include <cstring>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "check.hpp"

constexpr int count = 40, laps = 6;

enum class Stage { reuse, send, receive, probe };

struct Cell {
    int number, lap = 0;
    Stage next = Stage::reuse;
    bool gave_way = false, gave_up = false;
    double value = 0.0;
};

// How the run ends: "fail", or empty for a good end.
static std::string how;

static void step(Cell &cell, titin::Instance &instance) {
    for (;;) switch (cell.next) {
    case Stage::reuse:
        if (!instance.reuse()) {
            CHECK(cell.lap == laps);
            return;
        }
        cell.next = Stage::send;
        break;
    case Stage::send:
        if (cell.lap == 3 && !cell.gave_way) {
            // Lets other instances have their turn.
            cell.gave_way = true;
            throw titin::Pending();
        }
        cell.value = cell.number + cell.lap;
        instance.send("out", cell.value, cell.lap);
        if (!how.empty() && cell.number == 3 && cell.lap == 1) throw std::runtime_error("the ice is too thin");
        cell.next = Stage::receive;
        break;
    case Stage::receive: {
        std::optional<titin::Message> first;
        if (!cell.gave_up) try {
                cell.gave_up = true;
                first = instance.receive("in", std::chrono::hours(1));
            } catch (const titin::Pending &) {
                // The call is given up. Another call takes its place.
                instance.cancel("in");
                instance.cancel();
            }
        const titin::Message message = first ? std::move(*first) : instance.receive("in");
        const int before = (cell.number ? cell.number : count) - 1;
        CHECK(message.value().as<double>() == before + message.timestamp());
        cell.next = Stage::probe;
        break;
    }
    case Stage::probe:
        instance.receive("spare");
        cell.next = ++cell.lap < laps ? Stage::send : Stage::reuse;
        break;
    }
}

int main(int argc, char **argv) {
    if (argc > 1) how = argv[1];
    return guarded([] {
        std::vector<Cell> cells;
        for (int i = 0; i < count; ++i) cells.push_back({i});
        std::vector<titin::Guest> guests;
        for (Cell &cell : cells)
            guests.push_back({"cell_" + std::to_string(cell.number), "o_i: out; s: in spare",
                              [&cell](titin::Instance &instance) { step(cell, instance); }});
        titin::host_steps(guests, 3);
        std::cout << "all are done\n";
    });
}
