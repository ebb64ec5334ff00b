// One of the two ends of a path, as paths.c.
#include "check.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <titin/path.hpp>

namespace {

constexpr int many = 700000;

void give(titin::Path &path) {
    path.send(std::vector<std::int32_t>{1, -2, 3});
    // Every second column of a larger array.
    double wide[2][6];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 6; j++) wide[i][j] = j % 2 ? -1 : 10 * i + j / 2;
    path.send(titin::Span<const double>(&wide[0][0], {2, 3}, titin::Extents{6, 2}));
    path.send(std::array<std::complex<double>, 2>{{{1, 2}, {3, 4}}});
    const bool flags[] = {true, false, true};
    path.send(flags);
    path.send(std::vector<std::int8_t>());
    std::vector<double> numbers(many);
    for (int i = 0; i < many; i++) numbers[std::size_t(i)] = i;
    path.send(numbers.data(), {many});
}

void take(titin::Path &path) {
    std::vector<std::int32_t> whole(3);
    path.receive_into(whole);
    CHECK((whole == std::vector<std::int32_t>{1, -2, 3}));
    double wide[2][6] = {};
    path.receive_into(titin::Span<double>(&wide[0][0], {2, 3}, titin::Extents{6, 2}));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 6; j++) CHECK(wide[i][j] == (j % 2 ? 0 : 10 * i + j / 2));
    std::array<std::complex<double>, 2> complexes;
    path.receive_into(complexes);
    CHECK(complexes[0] == std::complex<double>(1, 2) && complexes[1] == std::complex<double>(3, 4));
    bool flags[3];
    path.receive_into(flags);
    CHECK(flags[0] && !flags[1] && flags[2]);
    std::vector<std::int8_t> nothing;
    path.receive_into(nothing);
    const titin::Message message = path.receive();
    const auto numbers = message.array<double>({many});
    for (int i = 0; i < many; i++) CHECK(numbers(i) == i);
}

void surprise(titin::Path &path, bool listens) {
    if (!listens) {
        float numbers[4][5];
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 5; j++) numbers[i][j] = float(i - 2 * j);
        return path.send(numbers);
    }
    const auto message = path.receive();
    const auto numbers = message.array<float>();
    CHECK(numbers.rank() == 2 && numbers.extent(0) == 4 && numbers.extent(1) == 5);
    CHECK(numbers(3, 2) == 3 - 2 * 2);
    refused_saying<titin::TypeMismatch>("expected an array of float64", [&] { message.array<double>(); });
}

void misfit(titin::Path &path, bool listens) {
    if (!listens) {
        path.send(std::vector<std::uint8_t>(100));
        refused_saying<titin::MessageLost>("99", [&] { path.barrier(); });
        path.send(std::vector<std::int32_t>(2));
        refused_saying<titin::MessageLost>("int32", [&] { path.barrier(); });
        path.send(std::vector<std::uint8_t>(100));
        refused_saying<titin::MessageLost>("99", [&] { path.receive(); });
        path.barrier();
        return;
    }
    char room[99];
    refused_saying<titin::TypeMismatch>("there is room for 99", [&] { path.receive_bytes(room, sizeof room); });
    path.barrier();
    std::vector<double> numbers(2);
    refused_saying<titin::TypeMismatch>("expected an array of float64 of shape [2], found int32", [&] { path.receive_into(numbers); });
    path.barrier();
    refused_saying<titin::TypeMismatch>("there is room for 99", [&] { path.receive_bytes(room, sizeof room); });
    path.barrier();
}

void exchange(titin::Path &path, bool listens) {
    double own[1000], others[1001];
    for (int i = 0; i < 1000; i++) own[i] = listens * 1000 + i;
    CHECK(path.exchange(own, sizeof own, others, sizeof others) == sizeof own);
    for (int i = 0; i < 1000; i++) CHECK(others[i] == (1 - listens) * 1000 + i);
    const auto message = path.exchange(own, listens ? 8 : 16);
    CHECK(message.array<std::uint8_t>().size() == (listens ? 16 : 8));
}

void parts(titin::Path &path, bool listens) {
    if (!listens) return path.send_parts({{"he", 2}, {"llo", 3}});
    char word[8] = "";
    CHECK(path.receive_bytes(word, sizeof word) == 5 && std::string(word) == "hello");
}

// Both ways at once, while no thread waits.
void requests(titin::Path &path, bool listens) {
    std::vector<double> own(many), others(many);
    for (int i = 0; i < many; i++) own[std::size_t(i)] = i + listens;
    titin::PathRequest receive = path.ireceive_into(titin::Span<double>(others.data(), {2, many / 2}, titin::Extents{1, 2}));
    titin::PathRequest send = path.isend(own.data(), {2, many / 2});
    std::vector<const titin::PathRequest *> all{&receive, &send};
    for (int done = 0; done < 2; done++) all[titin::wait_any(all)] = nullptr;
    CHECK(receive.test() && receive.length() == many * 8);
    send.wait();
    refused_saying<titin::UsageError>("received no message", [&] { send.length(); });
    for (int i = 0; i < many / 2; i++)
        for (int j = 0; j < 2; j++) CHECK(others[std::size_t(2 * i + j)] == j * (many / 2) + i + 1 - listens);
    path.iexchange(own.data(), 800, others.data(), 808).wait();
    for (int i = 0; i < 100; i++) CHECK(others[std::size_t(i)] == i + 1 - listens);
    titin::PathRequest exchange = path.iexchange(own.data(), listens ? 8 : 16);
    exchange.wait();
    CHECK(exchange.message().array<std::uint8_t>().size() == (listens ? 16 : 8));
    path.ibarrier().wait();
}

// Several places in memory, and a call that is cancelled.
void pieces(titin::Path &path, bool listens) {
    char first[3], second[5] = "";
    if (!listens) {
        path.isend_parts({{"he", 2}, {"llo", 3}}).wait();
        path.isend_bytes("hello", 5).wait();
        const std::array<std::uint8_t, 5> word{'h', 'e', 'l', 'l', 'o'};
        path.isend(word).wait();
        path.barrier();
        return path.send(std::array<char, 4>{'n', 'e', 'x', 't'});
    }
    path.ireceive_parts({{first, 3}, {second, 5}}).wait();
    CHECK(std::string(first, 3) + second == "hello");
    CHECK(path.receive_parts({{first, 3}, {second, 5}}) == 5 && std::string(first, 3) + second == "hello");
    path.ireceive_bytes(second, 5).wait();
    CHECK(std::string(second, 5) == "hello");
    titin::PathRequest request = path.ireceive();
    CHECK(!request.test());
    refused_saying<titin::Timeout>("longer than 0.01 s", [&] { request.wait(std::chrono::milliseconds(10)); });
    CHECK(request.cancel() && !request.cancel());
    refused_saying<titin::Closed>("cancelled", [&] { request.wait(); });
    path.barrier();
    CHECK(path.receive_bytes(second, 5) == 4 && std::string(second, 4) == "next");
}

// The program that listens sends back what comes.
void echo(titin::Path &path, bool listens) {
    std::vector<std::int32_t> numbers{5, -6, 7}, back(3);
    if (!listens) {
        for (int i = 0; i < 5; i++) {
            path.send(numbers);
            path.receive_into(back);
            CHECK(numbers == back);
            numbers[0]++;
        }
        return path.barrier();
    }
    CHECK(path.cycle(path, back.data(), 12) == 12 && back == numbers);
    path.icycle(path, back.data(), 12).wait();
    CHECK(back[0] == 6);
    CHECK(path.cycle(path).array<std::int32_t>()(0) == 7);
    titin::PathRequest request = path.icycle(path);
    request.wait();
    CHECK(request.message().array<std::int32_t>()(0) == 8);
    path.cycle(path, nullptr, 0);
    refused_saying<titin::Timeout>("longer than 0.01 s", [&] { path.relay(path, std::chrono::milliseconds(10)); });
    path.barrier();
}

/// Large messages by other numbers of streams and in other pieces.
void change_streams(titin::Path &path) {
    std::vector<double> numbers(many);
    const int counts[] = {3, 5, 1, 2};
    for (int step = 0; step < 4; step++) {
        const int count = counts[step];
        path.set_streams(count);
        path.set_piece(1500 * (step + 1));
        CHECK(path.statistics().piece == 1500 * (step + 1));
        for (int tries = 0; path.streams() != count && tries < 20000; tries++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK(path.streams() == count);
        for (int i = 0; i < many; i++) numbers[std::size_t(i)] = i + step;
        path.send(numbers);
        std::fill(numbers.begin(), numbers.end(), 0.0);
        path.receive_into(numbers);
        for (int i = 0; i < many; i++) CHECK(numbers[std::size_t(i)] == i + step);
    }
    refused_saying<titin::UsageError>("at most 256", [&] { path.set_streams(257); });
    refused_saying<titin::UsageError>("1024 to 1048576", [&] { path.set_piece(1023); });
    path.set_streams(0);
    path.set_piece(0);
}

bool wanted;

void end(titin::Path &path, bool listens) {
    wanted = true;
    refused_saying<titin::Interrupted>("interrupted", [&] { path.receive(); });
    wanted = false;
    refused_saying<titin::Timeout>("longer than 0.01 s", [&] { path.receive(std::chrono::milliseconds(10)); });
    path.barrier();
    const titin::PathStatistics figures = path.statistics();
    CHECK(figures.bytes_sent > 2 * 8 * many && figures.bytes_received > 2 * 8 * many);
    CHECK(figures.messages_sent > 10 && figures.messages_received > 10);
    CHECK(figures.waited > 0.01 && figures.time > figures.waited && figures.send_rate > 0 && figures.receive_rate > 0);
    CHECK(figures.round_trip > 0 && figures.retransmissions >= 0);
    CHECK(figures.pacing == 4e9);
    path.set_pacing(0);
    path.set_buffers(0, 30000);
    // Linux doubles the buffer of a socket.
    const double receive_buffer = std::getenv("PATHS_SESSION") ? 30000 : 60000;
    CHECK(path.statistics().pacing == 0 && path.statistics().receive_buffer == receive_buffer);
    CHECK(path.statistics().send_buffer == figures.send_buffer);
    path.flush();
    if (listens) {
        // What comes goes back, until the other program closes the path.
        path.irelay(path).wait();
        refused_saying<titin::PortClosed>("closed", [&] { path.receive(); });
    } else
        for (std::int8_t sent = 0, back = 0; sent < 20; sent++) {
            path.send(&sent, {1});
            CHECK(path.receive_bytes(&back, 1) == 1 && back == sent);
        }
    path.close();
    refused_saying<titin::UsageError>("is closed", [&] { path.flush(); });
}

void converse(titin::Path path, bool listens) {
    CHECK(path.name() == "mesh" && path.streams() == 3);
    for (int round = 0; round < 2; round++) (round == listens ? give : take)(path);
    surprise(path, listens);
    misfit(path, listens);
    exchange(path, listens);
    parts(path, listens);
    requests(path, listens);
    pieces(path, listens);
    echo(path, listens);
    change_streams(path);
    end(path, listens);
}

void one_end(const std::string &place) {
    if (place == "listen") {
        titin::PathListener listener("127.0.0.1:0", titin::PathOptions().on_interrupt([] { return wanted; }));
        std::cout << listener.address() << std::endl;
        return converse(listener.accept(), true);
    }
    titin::PathOptions options;
    refused_saying<titin::UsageError>("64 hexadecimal digits", [&] { options.key("0123"); });
    options.on_interrupt([] { return wanted; });
    options.key_file(std::getenv("TITIN_PATH_KEY")).streams(3).pacing(4'000'000'000).buffers(1 << 20, 1 << 20);
    converse(titin::Path(place, "mesh", options.patience(std::chrono::seconds(20)).outage(std::chrono::seconds(30))), false);
}

} // namespace

int main(int, char **argv) {
    return guarded([&] { one_end(argv[1]); });
}
