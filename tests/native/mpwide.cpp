// A program of MPWide: both ends of a conversation, a ring, a relay, and calls that fail. `mpwide SCENE ARGUMENTS`.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <thread>
#include <unistd.h>

#include "MPWide.h"

static void check(bool holds, const char *what, int line) {
    if (holds) return;
    cerr << __FILE__ << ":" << line << ": " << what << endl;
    // At once: other threads may be in the middle of calls.
    _exit(2);
}

#define CHECK(what) check(what, #what, __LINE__)

typedef vector<char> Bytes;
typedef vector<string> Words;

static const char *const HERE = "localhost";

// The bytes that a side sends in a step: no two places of a message, sides or steps are alike.
static Bytes bytes_of(int side, int step, size_t size) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; i++) bytes[i] = char(i * 7 + i / 251 + side * 31 + step * 13);
    return bytes;
}

static vector<int> numbers(const string &text) {
    vector<int> found;
    istringstream words(text);
    for (string word; getline(words, word, ',');) found.push_back(stoi(word));
    return found;
}

static vector<int> init(vector<int> ports) {
    vector<string> hosts(ports.size(), HERE);
    const int before = MPW_NumChannels();
    MPW_Init(hosts.data(), ports.data(), int(ports.size()));
    CHECK(MPW_NumChannels() == before + int(ports.size()));
    vector<int> channels;
    for (size_t i = 0; i < ports.size(); i++) channels.push_back(before + int(i));
    return channels;
}

// A path, or a list of channels.
struct Line {
    int path;
    vector<int> channels;

    int count() { return int(channels.size()); }
    void send(Bytes &bytes) {
        if (path >= 0) CHECK(MPW_Send(bytes.data(), (long long)bytes.size(), path) == 0);
        else CHECK(MPW_Send(bytes.data(), (long long)bytes.size(), channels.data(), count()) == 0);
    }
    Bytes recv(size_t size) {
        Bytes bytes(size);
        if (path >= 0) CHECK(MPW_Recv(bytes.data(), (long long)size, path) == 0);
        else CHECK(MPW_Recv(bytes.data(), (long long)size, channels.data(), count()) == 0);
        return bytes;
    }
    void exchange(char *bytes, size_t size, char *memory, size_t room) {
        if (path >= 0) CHECK(MPW_SendRecv(bytes, (long long)size, memory, (long long)room, path) == 0);
        else CHECK(MPW_SendRecv(bytes, (long long)size, memory, (long long)room, channels.data(), count()) == 0);
    }
    Bytes exchange_any(Bytes &bytes, size_t room) {
        Bytes memory(room + 1, 'x');
        const long long size =
            path >= 0 ? MPW_DSendRecv(bytes.data(), (long long)bytes.size(), memory.data(), (long long)room, path)
                      : MPW_DSendRecv(bytes.data(), (long long)bytes.size(), memory.data(), (long long)room,
                                      channels.data(), count());
        CHECK(size >= 0 && size <= (long long)room);
        for (size_t i = size_t(size); i <= room; i++) CHECK(memory[i] == 'x');
        memory.resize(size_t(size));
        return memory;
    }
};

// Buffers of sizes that differ, one for each channel.
static void scattered(Line &line, int side, int step) {
    const size_t count = line.channels.size();
    vector<Bytes> sent, wanted, received;
    vector<char *> out, in;
    vector<long long> out_sizes, in_sizes;
    for (size_t i = 0; i < count; i++) {
        sent.push_back(bytes_of(side, step + int(i), 1000 * i + size_t(side)));
        wanted.push_back(bytes_of(1 - side, step + int(i), 1000 * i + size_t(1 - side)));
        received.push_back(Bytes(wanted[i].size()));
    }
    for (size_t i = 0; i < count; i++) {
        out.push_back(sent[i].data());
        in.push_back(received[i].data());
        out_sizes.push_back((long long)sent[i].size());
        in_sizes.push_back((long long)received[i].size());
    }
    MPW_PSendRecv(out.data(), out_sizes.data(), in.data(), in_sizes.data(), line.channels.data(), line.count());
    CHECK(received == wanted);
}

// Everything that the two ends of a line do with messages.
static void converse(Line line, int side) {
    const size_t count = line.channels.size();
    int step = 0;
    for (size_t size : {size_t(0), size_t(1), count - 1, count, count + 1, size_t(1000), size_t(9000001)}) {
        Bytes own = bytes_of(side, ++step, size), other = bytes_of(1 - side, step, size);
        if (side == 0) line.send(own);
        CHECK(line.recv(size) == other);
        if (side == 1) line.send(own);

        Bytes memory(size + 1, 'x');
        line.exchange(own.data(), size, memory.data(), size);
        CHECK(memory[size] == 'x');
        memory.resize(size);
        CHECK(memory == other);

        // Sizes that differ, by either kind of call.
        Bytes longer = bytes_of(side, ++step, size + size_t(5 * side));
        other = bytes_of(1 - side, step, size + size_t(5 * (1 - side)));
        memory.assign(other.size(), 'x');
        line.exchange(longer.data(), longer.size(), memory.data(), memory.size());
        CHECK(memory == other);
        CHECK(line.exchange_any(longer, size + 9) == other);
        CHECK(line.exchange_any(longer, other.size()) == other);

        // A message to the place from which one is sent.
        Bytes place = bytes_of(side, ++step, size);
        line.exchange(place.data(), size, place.data(), size);
        CHECK(place == bytes_of(1 - side, step, size));
    }
    // One side only sends where the other one does both.
    Bytes byte(1, char('a' + side));
    if (side == 0) line.send(byte);
    else {
        char got = 0;
        line.exchange(nullptr, 0, &got, 1);
        CHECK(got == 'a');
    }
    scattered(line, side, ++step);

    // The one that is first waits.
    typedef chrono::steady_clock clock;
    const clock::time_point begun = clock::now();
    if (side == 1) this_thread::sleep_for(chrono::milliseconds(50));
    MPW_Barrier(line.channels.back());
    CHECK(side == 1 || clock::now() - begun >= chrono::milliseconds(40));
}

static void nonblocking(Line line, int side) {
    // The other end sends only when it has got a byte.
    Bytes byte(1, 'b');
    if (side == 0) {
        Bytes place(10);
        const int exchange = MPW_ISendRecv(nullptr, 0, place.data(), 10, line.path);
        CHECK(!MPW_Has_NBE_Finished(exchange));
        line.send(byte);
        while (!MPW_Has_NBE_Finished(exchange)) this_thread::yield();
        CHECK(MPW_Has_NBE_Finished(exchange));
        MPW_Wait(exchange);
        CHECK(place == bytes_of(1, 1, 10));
    } else {
        CHECK(line.recv(1) == byte);
        Bytes message = bytes_of(1, 1, 10);
        line.send(message);
    }
    // Many at once, of all kinds, waited for in another order than they were begun in.
    const int many = 40;
    vector<Bytes> sent, received;
    for (int i = 0; i < many; i++) {
        sent.push_back(bytes_of(side, i, size_t(3000 * i)));
        received.push_back(Bytes(sent[size_t(i)].size()));
    }
    vector<int> exchanges;
    for (size_t i = 0; i < many; i++) {
        Bytes &out = sent[i], &in = received[i];
        exchanges.push_back(MPW_ISendRecv(out.data(), (long long)out.size(), in.data(), (long long)in.size(), line.path));
        CHECK(exchanges[i] == exchanges[0] + int(i));
    }
    for (size_t i = many; i-- > 0;) {
        MPW_Wait(exchanges[i]);
        CHECK(received[i] == bytes_of(1 - side, int(i), 3000 * i));
    }
}

static Line make_path(int port, int streams, int first = 0) {
    const int path = MPW_CreatePath(HERE, port, streams);
    CHECK(path >= 0);
    Line line = {path, {}};
    for (int i = 0; i < streams; i++) line.channels.push_back(first + i);
    return line;
}

// path PORT STREAMS SIDE
static void path(const Words &words) {
    const int streams = stoi(words[1]), side = stoi(words[2]);
    CHECK(MPW_getPacingRate() == -1);
    Line line = make_path(stoi(words[0]), streams);
    CHECK(line.path == 0 && MPW_NumChannels() == streams);
    converse(line, side);
    nonblocking(line, side);
    line.path = -1;
    converse(line, side);
    MPW_Print();
    CHECK(MPW_DestroyPath(0) == 0 && MPW_NumChannels() == 0);
    CHECK(MPW_Finalize() == 0);
}

// channels PORTS SIDE
static void channels(const Words &words) {
    const int side = stoi(words[1]);
    Line line = {-1, init(numbers(words[0]))};
    CHECK(line.channels[0] == 0);
    converse(line, side);
    for (int channel : line.channels) {
        Line one = {-1, {channel}};
        Bytes own = bytes_of(side, channel, 100);
        one.send(own);
        CHECK(one.recv(100) == bytes_of(1 - side, channel, 100));
    }
    // NULL stands for the first channels.
    const size_t count = line.channels.size();
    if (count > 1) {
        // Piece i goes by the channel in place i.
        Line turned = {-1, vector<int>(line.channels.rbegin(), line.channels.rend())};
        Bytes own = bytes_of(side, 3, count);
        turned.send(own);
        Bytes got = line.recv(count);
        CHECK(Bytes(got.rbegin(), got.rend()) == bytes_of(1 - side, 3, count));
        MPW_Send(own.data(), 2, nullptr, 2);
        Line first = {-1, {0, 1}};
        CHECK(first.recv(2) == bytes_of(1 - side, 3, 2));
    }
    MPW_Print();
    CHECK(MPW_Finalize() == 0 && MPW_NumChannels() == 0);
}

// threads PORT STREAMS: both ends in one process, and several threads on one path.
static void threads(const Words &words) {
    const int port = stoi(words[0]), streams = stoi(words[1]);
    int paths[2];
    auto connect = [&](int side) {
        paths[side] = MPW_CreatePathWithoutConnect(side ? HERE : "0", port, streams);
        while (MPW_ConnectPath(paths[side], side == 0) < 0) {}
    };
    thread first(connect, 0), second(connect, 1);
    first.join();
    second.join();
    CHECK(paths[0] + paths[1] == 1 && MPW_NumChannels() == 2 * streams);
    auto talk = [&](int side) {
        Line line = {paths[side], {}};
        for (int i = 0; i < streams; i++) line.channels.push_back(streams * paths[side] + i);
        converse(line, side);
        // A thread that sends and one that receives, on one path.
        auto many = [&](bool sends) {
            for (int i = 0; i < 50; i++) {
                Bytes bytes = bytes_of(sends ? side : 1 - side, i, 5000), wanted = bytes;
                if (sends) line.exchange(bytes.data(), 5000, nullptr, 0);
                else {
                    bytes.assign(5000, 'x');
                    line.exchange(nullptr, 0, bytes.data(), 5000);
                    CHECK(bytes == wanted);
                }
            }
        };
        thread sender(many, true), receiver(many, false);
        sender.join();
        receiver.join();
    };
    thread left(talk, 0), right(talk, 1);
    left.join();
    right.join();
    CHECK(MPW_Finalize() == 0);
}

// ring PORTS PORTS PLACE: one of three, with the ports to the next one and those to the last one.
static void ring(const Words &words) {
    const int place = stoi(words[2]), last = (place + 2) % 3;
    vector<int> to = numbers(words[0]), from = numbers(words[1]), all = to;
    const int count = int(to.size());
    all.insert(all.end(), from.begin(), from.end());
    vector<int> made = init(all);
    to.assign(made.begin(), made.begin() + count);
    from.assign(made.begin() + count, made.end());
    for (size_t size : {size_t(0), size_t(1), size_t(2), size_t(7), size_t(5000003)}) {
        Bytes own = bytes_of(place, 5, size + size_t(place)), wanted = bytes_of(last, 5, size + size_t(last));
        Bytes got(wanted.size());
        MPW_Cycle(own.data(), (long long)own.size(), got.data(), (long long)got.size(), to.data(), count, from.data(), count);
        CHECK(got == wanted);
        got.assign(size + 3, 'x');
        const long long length = MPW_DCycle(own.data(), (long long)own.size(), got.data(), (long long)got.size(), to.data(),
                                            count, from.data(), count);
        CHECK(length == (long long)wanted.size());
        for (size_t i = wanted.size(); i < got.size(); i++) CHECK(got[i] == 'x');
        got.resize(wanted.size());
        CHECK(got == wanted);
    }
    CHECK(MPW_Finalize() == 0);
}

// relay PORTS PORTS
static void relay(const Words &words) {
    vector<int> one = init(numbers(words[0])), other = init(numbers(words[1]));
    MPW_Relay(one.data(), other.data(), int(one.size()));
    CHECK(MPW_Finalize() == 0);
}

// relay_paths PORT PORT STREAMS
static void relay_paths(const Words &words) {
    const int streams = stoi(words[2]);
    Line one = make_path(stoi(words[0]), streams), other = make_path(stoi(words[1]), streams, streams);
    MPW_Relay(one.channels.data(), other.channels.data(), one.count());
    CHECK(MPW_Finalize() == 0);
}

// reopen PORTS SIDE
static void reopen(const Words &words) {
    const int side = stoi(words[1]);
    Line line = {-1, init(numbers(words[0]))};
    for (int round = 0; round < 3; round++) {
        Bytes own = bytes_of(side, round, 100000);
        line.send(own);
        CHECK(line.recv(100000) == bytes_of(1 - side, round, 100000));
        MPW_CloseChannels(line.channels.data(), line.count());
        for (int channel : line.channels) MPW_setWin(channel, 65536);
        CHECK(MPW_NumChannels() == line.count());
        if (side == round % 2) this_thread::sleep_for(chrono::milliseconds(300));
        MPW_ReOpenChannels(line.channels.data(), line.count());
        CHECK(MPW_NumChannels() == line.count());
    }
    CHECK(MPW_Finalize() == 0);
}

static void check_split(const char *text, int count, const string &wanted) {
    Bytes memory(text, text + strlen(text));
    vector<char *> pieces(size_t(count), nullptr);
    vector<long long> sizes(size_t(count), -1);
    MPW_splitBuf(memory.data(), (long long)memory.size(), count, pieces.data(), sizes.data());
    string found;
    char *end = memory.data();
    for (size_t i = 0; i < pieces.size(); i++) {
        CHECK(pieces[i] == end);
        end += sizes[i];
        found += string(pieces[i], size_t(sizes[i])) + "|";
    }
    CHECK(end == memory.data() + memory.size());
    CHECK(found == wanted);
}

// alone: what needs no other end.
static void alone(const Words &) {
    check_split("aaabbbcccdddeeefff", 6, "aaa|bbb|ccc|ddd|eee|fff|");
    check_split("0123456789", 4, "012|345|67|89|");
    check_split("01", 3, "0|1||");
    check_split("", 2, "||");
    check_split("abc", 1, "abc|");
    CHECK(string(MPW_DNSResolve("localhost")) == "127.0.0.1");
    CHECK(string(MPW_DNSResolve(string("127.0.0.2"))) == "127.0.0.2");
    CHECK(PacingMode == 1 && MPW_PacingMode == 1 && OptimizeStreamCount == 1);
    CHECK(MPW_getPacingRate() == -1);
    MPW_setPacingRate(10 * 1024 * 1024);
    CHECK(MPW_getPacingRate() == 10 * 1024 * 1024);
    MPW_setPacingRate(-1);
    CHECK(MPW_getPacingRate() == -1);
    CHECK(MPW_AutoTuning());
    MPW_setAutoTuning(false);
    CHECK(!MPW_AutoTuning());
    MPW_setChunkSize(65536, 65536);
    MPW_Init();
    // Without a key, as nothing is connected.
    const int path = MPW_CreatePathWithoutConnect("localhost", 16256, 4);
    CHECK(path == 0 && MPW_NumChannels() == 4);
    CHECK(MPW_CreatePathWithoutConnect("far.example", 16260, 2) == 1 && MPW_NumChannels() == 6);
    MPW_setWin(3, 262144);
    MPW_setPathWin(path, 262144);
    MPW_Print();
    CHECK(MPW_DestroyPath(path) == 0 && MPW_NumChannels() == 2);
    CHECK(MPW_DestroyPath(path) == -1);
    CHECK(MPW_Finalize() == 0 && MPW_NumChannels() == 0);
    CHECK(MPW_Finalize() == 0);
}

// paced PORT SIDE
static void paced(const Words &words) {
    MPW_setPacingRate(1e6);
    Line line = make_path(stoi(words[0]), 2);
    typedef chrono::steady_clock clock;
    const clock::time_point begun = clock::now();
    Bytes bytes(2000000);
    if (stoi(words[1]) == 0) line.send(bytes);
    else line.recv(bytes.size());
    MPW_Barrier(0);
    // A second for each stream; the first bytes, more than half a megabyte, go at once.
    CHECK(clock::now() - begun > chrono::milliseconds(500));
    CHECK(MPW_Finalize() == 0);
}

// send PORTS SIZE: by a path of one port, or by channels; then waits for a byte.
static void send(const Words &words) {
    vector<int> ports = numbers(words[0]);
    Line line = ports.size() == 1 ? make_path(ports[0], 3) : Line{-1, init(ports)};
    Bytes bytes(size_t(stoi(words[1])), 'a');
    line.send(bytes);
    line.recv(1);
}

// recv PORTS SIZE
static void recv(const Words &words) {
    vector<int> ports = numbers(words[0]);
    Line line = ports.size() == 1 ? make_path(ports[0], 3) : Line{-1, init(ports)};
    line.recv(size_t(stoi(words[1])));
}

// any PORTS SIZE ROOM
static void any(const Words &words) {
    vector<int> ports = numbers(words[0]);
    Line line = ports.size() == 1 ? make_path(ports[0], 3) : Line{-1, init(ports)};
    Bytes bytes(size_t(stoi(words[1])), 'a');
    line.exchange_any(bytes, size_t(stoi(words[2])));
    line.recv(1);
}

// leave PORT SIDE: one end sends and returns from main without MPW_Finalize.
static void leave(const Words &words) {
    Line line = make_path(stoi(words[0]), 2);
    Bytes bytes = bytes_of(0, 1, 9000000);
    if (stoi(words[1]) == 0) return line.send(bytes);
    this_thread::sleep_for(chrono::milliseconds(200));
    CHECK(line.recv(bytes.size()) == bytes);
    CHECK(MPW_Finalize() == 0);
}

// create HOST PORT STREAMS; connect HOST PORT STREAMS: print the status.
static void create(const Words &words) {
    cout << MPW_CreatePath(words[0], stoi(words[1]), stoi(words[2])) << endl;
    cout << MPW_NumChannels() << endl;
}

static void connect(const Words &words) {
    const int path = MPW_CreatePathWithoutConnect(words[0], stoi(words[1]), stoi(words[2]));
    cout << MPW_ConnectPath(path, false) << endl;
}

// misuse PORT CASE, with an end that only connects: misuse PORT -1
static void misuse(const Words &words) {
    Line line = make_path(stoi(words[0]), 3);
    char byte = 0;
    int some[] = {0, 1}, twice[] = {3, 3};
    switch (stoi(words[1])) {
    case 0: MPW_Send(&byte, 1, some, 2); break;
    case 1: MPW_Send(&byte, 1, 7); break;
    case 2: MPW_Wait(0); break;
    case 3: MPW_Has_NBE_Finished(5); break;
    case 4: MPW_Send(&byte, -1, 0); break;
    case 5: MPW_Recv(nullptr, 1, 0); break;
    case 6: MPW_splitBuf(&byte, 1, 0, nullptr, nullptr); break;
    case 7: MPW_Send(&byte, 1, twice, 2); break;
    case 8: MPW_ReOpenChannels(line.channels.data(), 3); break;
    case 9: MPW_CloseChannels(line.channels.data(), 3); MPW_Send(&byte, 1, 0); break;
    case 10: MPW_Wait(MPW_ISendRecv(nullptr, 0, nullptr, 0, 0)); MPW_Wait(0); break;
    case 11: MPW_Init("localhost", 65536); break;
    default: MPW_Finalize();
    }
}

int main(int argc, char **argv) {
    const map<string, function<void(const Words &)>> scenes = {
        {"path", path},       {"channels", channels}, {"threads", threads}, {"ring", ring},       {"relay", relay},
        {"relay_paths", relay_paths}, {"reopen", reopen}, {"alone", alone}, {"paced", paced},     {"send", send},
        {"recv", recv},       {"any", any},           {"leave", leave},     {"create", create},   {"connect", connect},
        {"misuse", misuse},
    };
    CHECK(argc > 1);
    scenes.at(argv[1])(Words(argv + 2, argv + argc));
    return 0;
}
