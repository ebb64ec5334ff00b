// One of the two ends of a path, as paths.c.
#include "check.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <cstring>
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

// A number as an element of a type. For bfloat16 the number stands for the bits.
template <class T>
T element(int number) {
    if constexpr (std::is_same_v<T, bool>) return number % 2 != 0;
    else if constexpr (std::is_same_v<T, titin::bfloat16>) {
        const auto bits = std::uint16_t(number);
        T made;
        std::memcpy(static_cast<void *>(&made), &bits, sizeof made);
        return made;
    } else if constexpr (std::is_arithmetic_v<T>) return T(number);
    else return T(typename T::value_type(number), typename T::value_type(-number));
}

// Six numbers in two rows.
template <class T>
std::array<T, 6> filled(titin::Order order, int first) {
    std::array<T, 6> elements{};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            elements[std::size_t(order == titin::Order::C ? 3 * i + j : 2 * j + i)] = element<T>(first + 3 * i + j);
    return elements;
}

template <class T>
void exchange_type(titin::Path &path, bool listens) {
    for (int turn = 0; turn < 4; turn++) {
        const titin::Order sent = turn % 2 ? titin::Order::Fortran : titin::Order::C;
        const titin::Order wanted = turn / 2 ? titin::Order::Fortran : titin::Order::C;
        const std::array<T, 6> own = filled<T>(sent, listens ? 11 : 1), expected = filled<T>(wanted, listens ? 1 : 11);
        std::array<T, 6> others{};
        const titin::Span out(own, {2, 3}, sent);
        titin::Span in(others, {2, 3}, wanted);
        if (turn < 3) path.exchange(out, in);
        else path.iexchange(out, in).wait();
        CHECK(!std::memcmp(others.data(), expected.data(), sizeof expected));
    }
}

// An exchange of arrays of every type, from and into either order. The last one of each type does not wait.
void types(titin::Path &path, bool listens) {
    exchange_type<bool>(path, listens);
    exchange_type<std::int8_t>(path, listens);
    exchange_type<std::int16_t>(path, listens);
    exchange_type<std::int32_t>(path, listens);
    exchange_type<std::int64_t>(path, listens);
    exchange_type<std::uint8_t>(path, listens);
    exchange_type<std::uint16_t>(path, listens);
    exchange_type<std::uint32_t>(path, listens);
    exchange_type<std::uint64_t>(path, listens);
    exchange_type<float>(path, listens);
    exchange_type<double>(path, listens);
    exchange_type<std::complex<float>>(path, listens);
    exchange_type<std::complex<double>>(path, listens);
    // C++ has no type for float16.
    for (int turn = 0; turn < 4; turn++) {
        const auto own = filled<std::uint16_t>(titin::Order::C, listens ? 11 : 1);
        std::array<std::uint16_t, 6> others{};
        const std::int64_t extents[] = {2, 3};
        const titin_path_layout layout{TITIN_F16, 2, extents, nullptr, TITIN_ORDER_C, nullptr};
        CHECK(titin_path_exchange_array(path.raw(), own.data(), &layout, others.data(), &layout, TITIN_WAIT) == 0);
        CHECK(others == filled<std::uint16_t>(titin::Order::C, listens ? 1 : 11));
    }
    exchange_type<titin::bfloat16>(path, listens);
}

// Exchanges of arrays of other kinds: large ones, with strides, of two types, and where the receiver does not know the type.
void arrays(titin::Path &path, bool listens) {
    std::vector<double> own(many), others(many);
    for (int i = 0; i < many; i++) own[std::size_t(i)] = i + listens;
    path.exchange(own, others);
    for (int i = 0; i < many; i++) CHECK(others[std::size_t(i)] == i + 1 - listens);

    // The last column but one goes out, and the last one is the neighbour's.
    double u[4][5] = {};
    for (int i = 0; i < 4; i++) u[i][3] = i + 10 * listens;
    path.exchange(titin::Span<const double>(&u[0][3], {4}, titin::Extents{5}), titin::Span<double>(&u[0][4], {4}, titin::Extents{5}));
    for (int i = 0; i < 4; i++) CHECK(u[i][3] == i + 10 * listens && u[i][4] == i + 10 * (1 - listens));

    // The program that listens sends whole numbers, and the other one a single real number.
    const std::vector<std::int32_t> whole{7, -8};
    const float real = 2.5F;
    if (listens) {
        float found = 0;
        path.exchange(whole, titin::Span<float>(&found, {}), std::chrono::minutes(1));
        CHECK(found == 2.5F);
    } else {
        std::int32_t back[2];
        path.exchange(&real, titin::Extents{}, back);
        CHECK(back[0] == 7 && back[1] == -8);
    }
    // Braces are extents, and not a number of bytes.
    const titin::Message message = listens ? path.exchange(whole.data(), {2}) : path.exchange(whole);
    CHECK((message.array<std::int32_t>().vector() == whole));
    const std::int32_t two[] = {7, -8};
    titin::PathRequest request = listens ? path.iexchange(two) : path.iexchange(whole.data(), {2});
    request.wait();
    CHECK((request.message().array<std::int32_t>().vector() == whole));
}

// Both ends hear of an array that does not fit, in an exchange at either end.
void exchange_misfit(titin::Path &path, bool listens) {
    const std::string both = "expected an array of float64 of shape [2], found int32 of shape [2]";
    const std::string shapes = "expected an array of float64 of shape [2], found float64 of shape [3]";
    const std::vector<std::int32_t> whole{1, 2};
    std::vector<double> real{5, 6}, room(2);
    if (listens) {
        refused_saying<titin::TypeMismatch>(both, [&] { path.receive_into(room); });
        path.barrier();
        refused_saying<titin::UsageError>("shares memory", [&] { path.exchange(real, real); });
        refused_saying<titin::TypeMismatch>(both, [&] { path.exchange(real, room); });
        path.barrier();
        titin::PathRequest request = path.iexchange(real.data(), {2}, room);
        refused_saying<titin::TypeMismatch>(shapes, [&] { request.wait(); });
        return path.barrier();
    }
    refused_saying<titin::MessageLost>(both, [&] { path.exchange(whole, room); });
    path.barrier();
    path.send(whole);
    refused_saying<titin::MessageLost>(both, [&] { path.barrier(); });
    path.receive_into(room);
    CHECK(room == real);
    path.send(std::vector<double>{1, 2, 3});
    refused_saying<titin::MessageLost>(shapes, [&] { path.barrier(); });
    room.assign(2, 0);
    path.receive_into(room);
    CHECK(room == real);
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
        const std::uint8_t word[] = {'h', 'e', 'l', 'l', 'o'};
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
    types(path, listens);
    arrays(path, listens);
    exchange_misfit(path, listens);
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
