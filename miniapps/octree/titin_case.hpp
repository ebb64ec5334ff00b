// What both programs have in common with titin: how they read the settings, and what they tell of their results.
#pragma once

#include "case.hpp"
#include "statistics.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <titin.hpp>
#include <vector>

inline Case case_of(const titin::Instance &instance) {
    return read_case([&](const char *name) { return instance.setting<double>(name); },
                     [&](const char *name) { return instance.setting<std::int64_t>(name); },
                     [&](const char *name) {
                         std::vector<std::array<double, 3>> points;
                         for (const auto &point : instance.setting<std::vector<std::vector<double>>>(name)) {
                             if (point.size() != 3)
                                 throw std::runtime_error("a point of the setting `" + std::string(name) + "` has " +
                                                          std::to_string(point.size()) + " numbers: give three");
                             points.push_back({point[0], point[1], point[2]});
                         }
                         return points;
                     });
}

// An array over the cube of which this rank has these cells.
inline titin::Decomposition spread(const Mesh &mesh, const std::vector<Cell> &cells) {
    return titin::Decomposition({mesh.edge(), mesh.edge(), mesh.edge()}).indices(cells);
}

// Seconds since 1970, by the clock that all programs of a host share.
inline double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

inline std::string hexadecimal(std::uint64_t number) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
    return text;
}

// The message and the field with the results of a program.
class Results {
public:
    Results(titin::Instance &instance, const Mesh &mesh, const Statistics &statistics)
        : instance_(instance), mesh_(mesh), statistics_(statistics) {
        if (instance.is_connected("statistics"))
            field_.emplace(instance.field("statistics", spread(mesh, mesh.cells()), std::vector<int>(Statistics::results, TITIN_F64)));
    }

    // `series` are those of all ranks one after the other, on rank 0.
    void send(const Case &here, std::uint64_t fingerprint, const std::vector<double> &series) {
        // The cells of all ranks, which each rank can find.
        std::vector<Cell> all;
        std::vector<std::int64_t> sizes;
        for (int part = 0; part < mesh_.cut().parts(); ++part) {
            const Mesh other(mesh_.tube(), mesh_.cut(), part);
            all.insert(all.end(), other.cells().begin(), other.cells().end());
            sizes.push_back(other.size());
        }
        titin::Value report = titin::Value::map();
        report.set("cells", titin::Value::array(all));
        report.set("sizes", titin::Value::array(sizes));
        report.set("edge", mesh_.edge());
        report.set("radius", mesh_.tube().radius(0.0));
        report.set("viscosity", here.viscosity);
        report.set("force", here.force);
        report.set("first", here.from);
        report.set("every", here.every);
        report.set("samples", statistics_.samples());
        report.set("probes", titin::Value::array(statistics_.probes()));
        report.set("series", titin::Value::array(series));
        report.set("fingerprint", hexadecimal(fingerprint));
        report.set("ranks", mesh_.cut().parts());
        instance_.send("report", report, here.steps);
        if (field_) field_->send(here.steps, statistics_.found());
    }

private:
    titin::Instance &instance_;
    const Mesh &mesh_;
    const Statistics &statistics_;
    std::optional<titin::Field> field_;
};
