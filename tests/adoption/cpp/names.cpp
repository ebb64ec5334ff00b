// The classes of yMMSL: names, references, settings, operators, ports and conduits. Writes nothing if all is well.
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>

#include <ymmsl/ymmsl.hpp>

#include "expect.hpp"

using namespace ymmsl;

template <class Error, class Call>
static bool throws(Call call) {
    try {
        call();
    } catch (const Error &) {
        return true;
    }
    return false;
}

template <class T>
static std::string text(const T &value) {
    std::ostringstream stream;
    stream << value;
    return stream.str();
}

static void identifiers() {
    const Identifier name("macro_1");
    EXPECT(name == "macro_1" && name == std::string("macro_1") && name != "micro" && "macro_1" + std::string() == name);
    EXPECT(text(name) == "macro_1" && "x" + std::string(name) == std::string("x") + name && name + std::string("y") == "macro_1y");
    for (const char *bad : {"", "1a", "a-b", "a.b", "a b"}) EXPECT(throws<std::invalid_argument>([&] { (void)Identifier(bad); }));
}

static void references() {
    const Reference reference("macro.sub[2].out[3][4]");
    EXPECT(reference.length() == 6 && reference[0].identifier() == "macro" && reference[2].index() == 2);
    EXPECT(std::string(reference) == "macro.sub[2].out[3][4]" && reference == "macro.sub[2].out[3][4]" && text(reference) == std::string(reference));
    EXPECT(reference[2].is_index() && reference[1].is_identifier() && reference != Reference("macro"));
    EXPECT(throws<std::runtime_error>([&] { (void)reference[0].index(); }) && throws<std::runtime_error>([&] { (void)reference[2].identifier(); }));
    Reference built = Reference("a") + Reference("b") + 3 + std::vector<int>{4, 5};
    built += ReferencePart(Identifier("c"));
    built += std::vector<int>{6};
    EXPECT(built == "a.b[3][4][5].c[6]" && Reference(built.begin(), built.begin() + 2) == "a.b");
    for (const char *bad : {"", "a.", "a[", "a[x]", "a[]", "a[1]b", "[1]", "a..b"})
        EXPECT(throws<std::invalid_argument>([&] { (void)Reference(bad); }));
    std::unordered_map<Reference, int> known{{reference, 1}};
    known[Reference("macro.sub[2].out[3][4]")] += 1;
    EXPECT(known.size() == 1 && known.begin()->second == 2);
}

static void settings() {
    Settings all;
    EXPECT(all.empty() && all.size() == 0);
    all["text"] = "word";
    all["int"] = 5;
    all["float"] = 0.5;
    all["flag"] = true;
    all["ints"] = std::vector<std::int64_t>{1, 2};
    all["floats"] = {0.5, 1.5};
    all["table"] = {{1.0, 2.0}, {3.0, 4.0}};
    EXPECT(all.size() == 7 && all.contains("flag") && !all.contains("none"));
    EXPECT(all.at("text").is_a<std::string>() && all.at("text").as<std::string>() == "word");
    EXPECT(all.at("int").as<std::int64_t>() == 5 && all.at("float").as<double>() == 0.5 && all.at("flag").as<bool>());
    EXPECT(all.at("ints").is_a<std::vector<std::int64_t>>() && all.at("floats").as<std::vector<double>>()[1] == 1.5);
    EXPECT(all.at("table").as<std::vector<std::vector<double>>>()[1][0] == 3.0);
    EXPECT(throws<std::bad_cast>([&] { all.at("int").as<double>(); }) && throws<std::bad_cast>([&] { all.at("flag").as<std::int64_t>(); }));
    EXPECT(throws<std::out_of_range>([&] { all.at("none"); }));
    const Settings copy = all;
    EXPECT(copy == all);
    all["int"] = 6;
    EXPECT(copy != all && SettingValue(5) != SettingValue(5.0) && SettingValue("5") != SettingValue(5));
    EXPECT(all.erase("int") == 1 && all.erase("int") == 0 && all.size() == 6);
    all.clear();
    all["a.b[1]"] = {0.5, 1.0};
    EXPECT(text(all) == "Settings(a.b[1]: [0.5, 1])" && text(SettingValue("x")) == "\"x\"" && text(SettingValue(true)) == "true");
}

static void components() {
    EXPECT(allows_sending(Operator::O_I) && allows_sending(Operator::O_F) && !allows_sending(Operator::S));
    EXPECT(allows_receiving(Operator::F_INIT) && allows_receiving(Operator::S) && !allows_receiving(Operator::O_F));
    EXPECT(operator_name(Operator::F_INIT) == "F_INIT" && operator_for_name("O_F") == Operator::O_F);
    EXPECT(throws<std::runtime_error>([] { operator_for_name("O_X"); }));
    const Port port("out", Operator::O_I);
    EXPECT(port.name == "out" && port.oper == Operator::O_I);
    const Conduit conduit("a.b.out[2]", "c.in");
    EXPECT(conduit.sending_component() == "a.b" && conduit.sending_port() == "out" && conduit.sending_slot() == std::vector<int>{2});
    EXPECT(conduit.receiving_component() == "c" && conduit.receiving_port() == "in" && conduit.receiving_slot().empty());
    EXPECT(conduit == Conduit("a.b.out[2]", "c.in") && std::string(conduit) == "Conduit(a.b.out[2] -> c.in)");
    EXPECT(throws<std::invalid_argument>([] { (void)Conduit("out", "c.in"); }));
}

int main() {
    identifiers();
    references();
    settings();
    components();
    return failures != 0;
}
