// The times of the parts of a step, as in figure 8 of the MUSCLE 2 paper, and of MPI within a program.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <mpi.h>
#include <titin.hpp>
#include <vector>

class Watch {
public:
    enum Part { collide, halo, gather, exchange, update };

    // Adds the time since the last lap to this part.
    void lap(Part part) {
        const Clock::time_point now = Clock::now();
        step_[part] += std::chrono::duration<double>(now - last_).count();
        last_ = now;
    }
    // A step is over.
    void step() {
        double all = 0;
        for (std::size_t part = 0; part < 5; ++part) {
            all += step_[part];
            parts_[part] += step_[part];
        }
        steps_.push_back(all);
        outside_.push_back(all - step_[collide]);
        step_ = {};
    }

    // For rank 0, in seconds: each step there; the parts of a step, averaged over steps and ranks; and the time of each step
    // outside of `collide` on the rank with the shortest such time, which waited least for the others.
    titin::Value report(MPI_Comm comm) const {
        int ranks;
        MPI_Comm_size(comm, &ranks);
        const int steps = int(steps_.size());
        std::array<double, 5> parts{};
        std::vector<double> outside(outside_.size());
        MPI_Reduce(parts_.data(), parts.data(), 5, MPI_DOUBLE, MPI_SUM, 0, comm);
        MPI_Reduce(outside_.data(), outside.data(), steps, MPI_DOUBLE, MPI_MIN, 0, comm);
        titin::Value report = titin::Value::map();
        constexpr std::array<const char *, 5> names = {"collide", "halo", "gather", "exchange", "update"};
        for (std::size_t part = 0; part < 5; ++part) report.set(names[part], parts[part] / ranks / std::max(1, steps));
        report.set("steps", titin::Value::array(steps_));
        report.set("outside", titin::Value::array(outside));
        return report;
    }

private:
    using Clock = std::chrono::steady_clock;

    Clock::time_point last_ = Clock::now();
    std::array<double, 5> step_{}, parts_{};
    std::vector<double> steps_, outside_;
};
