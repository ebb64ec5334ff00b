// Data without a run: every type, references, and the errors. Writes nothing if all is well.
#include "expect.hpp"
#include "record.hpp"

using libmuscle::Data;
using libmuscle::DataConstRef;
using libmuscle::StorageOrder;

template <class Error, class Call>
static bool throws(Call call) {
    try {
        call();
    } catch (const std::exception &error) {
        return typeid(error) == typeid(Error) || (std::is_same<Error, std::bad_cast>::value && dynamic_cast<const std::bad_cast *>(&error));
    }
    return false;
}

template <class T>
static void whole_number(T number, bool is_signed) {
    const Data data(number);
    EXPECT(data.is_a<T>() && data.as<T>() == number);
    EXPECT(data.is_a<char>() && data.is_a<short>() && data.is_a<int>() && data.is_a<long>() && data.is_a<long long>());
    const bool natural = !is_signed || number > 0;
    EXPECT(data.is_a<unsigned char>() == natural && data.is_a<unsigned short>() == natural && data.is_a<unsigned>() == natural);
    EXPECT(data.is_a<unsigned long>() == natural && data.is_a<unsigned long long>() == natural);
    EXPECT(!data.is_a<bool>() && !data.is_a<double>() && !data.is_a<float>() && !data.is_a<std::string>() && !data.is_nil());
    EXPECT(throws<std::runtime_error>([&] { data.as<double>(); }));
}

static void scalars() {
    whole_number(5, true);
    whole_number(-5, true);
    whole_number(-5L, true);
    whole_number(5LL, true);
    whole_number(5u, false);
    whole_number(5ul, false);
    whole_number(5ull, false);
    EXPECT(Data(200).as<unsigned char>() == 200);
    EXPECT(throws<std::bad_cast>([] { Data(300).as<char>(); }));
    EXPECT(throws<std::bad_cast>([] { Data(-40000).as<short>(); }));
    EXPECT(throws<std::bad_cast>([] { Data(1LL << 40).as<int>(); }));
    EXPECT(throws<std::bad_cast>([] { Data(~0ull).as<long>(); }));
    EXPECT(Data(~0ull).as<unsigned long long>() == ~0ull);
    EXPECT(throws<std::runtime_error>([] { Data(-1).as<unsigned>(); }));
    EXPECT(Data(2.5f).is_a<float>() && !Data(2.5f).is_a<double>() && Data(2.5f).as<float>() == 2.5f);
    EXPECT(Data(2.5).is_a<double>() && !Data(2.5).is_a<float>() && Data(2.5).as<double>() == 2.5);
    EXPECT(Data(true).as<bool>() && !Data(true).is_a<int>());
    EXPECT(Data("text").as<std::string>() == "text" && Data(std::string("a\0b", 3)).as<std::string>().size() == 3);
    EXPECT(Data().is_nil() && throws<std::runtime_error>([] { Data().size(); }));
    EXPECT(throws<std::runtime_error>([] { Data("text").as<int>(); }));
    EXPECT(!Data(1).is_a<std::vector<double>>());
}

static void references() {
    Data first(1), second(first);
    second = 2;
    EXPECT(first.as<int>() == 2);
    Data list = Data::list(1, "two", Data::list(3.0)), same = Data();
    same = list;
    same[0] = "changed";
    EXPECT(list[0].as<std::string>() == "changed" && list.size() == 3);
    Data inner = list[2];
    inner[0] = 4.0;
    EXPECT(list[2][0].as<double>() == 4.0);
    DataConstRef constant(list);
    EXPECT(constant[1].as<std::string>() == "two");
    constant.reseat(first);
    EXPECT(constant.as<int>() == 2 && list.is_a_list());
    EXPECT(throws<std::out_of_range>([&] { list[3]; }) && throws<std::runtime_error>([&] { list["key"]; }));
    EXPECT(throws<std::runtime_error>([&] { first[0]; }));
    const Data nils = Data::nils(3);
    EXPECT(nils.size() == 3 && nils[2].is_nil() && Data::list().size() == 0);
    EXPECT(DataConstRef::list(1, 2).size() == 2 && DataConstRef::nils(2).size() == 2);
}

static void dicts() {
    Data dict = Data::dict("a", 1, "b", Data::dict("c", 2.5));
    dict["new"] = true;
    dict["b"]["c"] = 3.5;
    EXPECT(dict.size() == 3 && dict["new"].as<bool>() && dict["b"]["c"].as<double>() == 3.5);
    EXPECT(dict.key(0) == "a" && dict.value(0).as<int>() == 1);
    dict.value(0) = 7;
    EXPECT(dict["a"].as<int>() == 7);
    const DataConstRef constant(dict);
    EXPECT(constant["a"].as<int>() == 7 && constant.key(2) == "new" && constant.value(2).as<bool>());
    EXPECT(throws<std::out_of_range>([&] { constant["none"]; }) && throws<std::out_of_range>([&] { constant.key(3); }));
    EXPECT(throws<std::out_of_range>([&] { constant.value(3); }) && throws<std::runtime_error>([&] { constant[0]; }));
    EXPECT(throws<std::runtime_error>([] { Data(1).key(0); }) && throws<std::runtime_error>([] { Data::list(1).value(0); }));
    EXPECT(Data::dict().size() == 0 && Data::dict()["x"].is_nil() && DataConstRef::dict("x", 1)["x"].as<int>() == 1);
}

template <class T>
static void grid_of(const std::vector<T> &values) {
    const Data data = Data::grid(values.data(), {2, 3}, {"y", "x"}, StorageOrder::first_adjacent);
    EXPECT(data.is_a_grid_of<T>() && data.size() == 6 && (data.shape() == std::vector<std::size_t>{2, 3}));
    EXPECT(data.storage_order() == StorageOrder::first_adjacent && data.has_indexes());
    EXPECT((data.indexes() == std::vector<std::string>{"y", "x"}));
    EXPECT(std::equal(values.begin(), values.end(), data.elements<T>()) && data.elements<T>() != values.data());
    const DataConstRef other(data);
    EXPECT(other.elements<T>() == data.elements<T>());
    EXPECT(!data.is_a_list() && !data.is_a<T>() && throws<std::runtime_error>([&] { data.as<T>(); }));
    const DataConstRef plain = DataConstRef::grid(values.data(), {6});
    EXPECT(!plain.has_indexes() && plain.storage_order() == StorageOrder::last_adjacent);
    EXPECT(throws<std::runtime_error>([&] { plain.indexes(); }));
}

static void grids() {
    grid_of<int>({1, 2, 3, 4, 5, 6});
    grid_of<long>({1, 2, 3, 4, 5, 6});
    grid_of<long long>({1, 2, 3, 4, 5, 6});
    grid_of<float>({1, 2, 3, 4, 5, 6});
    grid_of<double>({1, 2, 3, 4, 5, 6});
    grid_of<std::int8_t>({1, 2, 3, 4, 5, 6});
    const double values[6] = {1, 2, 3, 4, 5, 6};
    const bool flags[2] = {true, false};
    EXPECT(Data::grid(flags, {2}).elements<bool>()[0]);
    EXPECT(throws<std::runtime_error>([&] { Data::grid(values, {2, 3}, {"x"}); }));
    const Data data = Data::grid(values, {2, 3});
    EXPECT(!data.is_a_grid_of<float>() && throws<std::runtime_error>([&] { data.elements<float>(); }));
    EXPECT(throws<std::runtime_error>([] { Data(1.0).shape(); }) && throws<std::runtime_error>([] { Data(1.0).storage_order(); }));
    EXPECT(throws<std::runtime_error>([] { Data(1.0).has_indexes(); }) && throws<std::runtime_error>([] { Data(1.0).indexes(); }));
    EXPECT(data.describe() == "a grid of float64 with the shape (2, 3)");
}

static void byte_arrays() {
    Data bytes = Data::byte_array(3);
    bytes.as_byte_array()[1] = 'x';
    const Data same = bytes;
    EXPECT(same.is_a_byte_array() && same.size() == 3 && same.as_byte_array()[1] == 'x' && same.as_byte_array()[0] == 0);
    char buffer[4] = "abc";
    const Data borrowed = Data::byte_array(buffer, 4);
    buffer[0] = 'z';
    EXPECT(borrowed.as_byte_array()[0] == 'z' && borrowed.as_byte_array() == buffer);
    EXPECT(throws<std::runtime_error>([] { Data(1).as_byte_array(); }));
}

static void settings() {
    ymmsl::Settings settings;
    settings["a"] = 1;
    settings["b.c"] = {0.5, 1.5};
    const Data data(settings);
    EXPECT(data.is_a<ymmsl::Settings>() && data.as<ymmsl::Settings>() == settings && !data.is_a_dict());
    EXPECT(!Data::dict("a", 1).is_a<ymmsl::Settings>());
    EXPECT(throws<std::runtime_error>([] { Data(1).as<ymmsl::Settings>(); }));
    using ymmsl::SettingValue;
    for (const SettingValue &value :
         {SettingValue("text"), SettingValue(5), SettingValue(2.5), SettingValue(true), SettingValue(std::vector<std::int64_t>{1, 2}),
          SettingValue({0.5, 1.5}), SettingValue({{1.0, 2.0}, {3.0, 4.0}})}) {
        const Data setting(value);
        EXPECT(setting.is_a<SettingValue>() && setting.as<SettingValue>() == value);
    }
    EXPECT(Data::list().as<SettingValue>().is_a<std::vector<double>>());
    EXPECT(!Data::list("text").is_a<SettingValue>() && !Data::list(1, 2.5).is_a<SettingValue>() && !Data().is_a<SettingValue>());
    EXPECT(!Data(2.5f).is_a<SettingValue>() && !data.is_a<SettingValue>());
    EXPECT(throws<std::runtime_error>([] { Data::list("text").as<SettingValue>(); }));
    EXPECT(Data(SettingValue()).is_nil());
}

static void messages() {
    using libmuscle::Message;
    ymmsl::Settings settings;
    settings["k"] = 1;
    EXPECT(Message(1.5).timestamp() == 1.5 && Message(1.5).data().is_nil());
    Message message(1.5, 2.5, Data(3), settings);
    EXPECT(message.has_next_timestamp() && message.next_timestamp() == 2.5 && message.settings() == settings);
    Message other(0.5, Data("other"));
    EXPECT(!other.has_next_timestamp() && !other.has_settings());
    EXPECT(throws<std::logic_error>([&] { other.next_timestamp(); }) && throws<std::logic_error>([&] { other.settings(); }));
    other = message;
    message.unset_next_timestamp();
    message.unset_settings();
    message.set_timestamp(9.0);
    message.set_data(Data(4));
    EXPECT(other.timestamp() == 1.5 && other.has_next_timestamp() && other.has_settings() && other.data().as<int>() == 3);
    EXPECT(message.timestamp() == 9.0 && !message.has_next_timestamp() && !message.has_settings() && message.data().as<int>() == 4);
    message.set_next_timestamp(10.0);
    message.set_settings(settings);
    EXPECT(message.next_timestamp() == 10.0 && message.settings().at("k").as<std::int64_t>() == 1);
}

int main() {
    scalars();
    references();
    dicts();
    grids();
    byte_arrays();
    settings();
    messages();
    return failures != 0;
}
