// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/border.hpp>
#include <cohort/function.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace shop {

enum class colour : std::uint8_t { red, green = 200 };

struct item {
    std::string name;
    int count = 0;
    friend bool operator==(const item&, const item&) = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(item, name, count)

class sealed {  // no default constructor: its adl_serializer returns it
public:
    explicit sealed(int v) : value(v) {}
    int value;
    friend bool operator==(const sealed&, const sealed&) = default;
};

struct silent {};

struct by_length {
    bool operator()(const std::string& a, const std::string& b) const {
        return a.size() < b.size();
    }
};

}  // namespace shop

template <>
struct nlohmann::adl_serializer<shop::sealed> {
    static void to_json(json& j, const shop::sealed& s) { j = s.value; }
    static shop::sealed from_json(const json& j) { return shop::sealed(j.get<int>()); }
};

// A user has his own way with optionals: ours must not collide with it.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
    static void to_json(json& j, const std::optional<T>& o) { j = o ? json(*o) : json("none"); }
    static void from_json(const json& j, std::optional<T>& o) { o = j.get<T>(); }
};

/// A value that is a descriptor: it travels as its place among the attachments.
struct carried_descriptor {
    std::shared_ptr<const int> descriptor;
};

template <>
struct cohort::detail::codec<carried_descriptor> {
    static void write(encoder& to, const carried_descriptor& value) {
        to.unsigned_integer(to.attach(value.descriptor));
    }
    static carried_descriptor read(decoder& from) {
        return {from.descriptor(from.integer().magnitude)};
    }
    static constexpr bool carries = true;
};

namespace codec_test {

namespace {

using namespace cohort;
using namespace std::chrono_literals;

template <class T>
T there_and_back(const T& value) {
    return std::get<0>(detail::decode_arguments<std::tuple<T>>(
        detail::encode_arguments(std::tuple<T>(value)).cbor, {}));
}

template <class T>
void check_same(const T& value) {
    CHECK(there_and_back(value) == value);
}

template <class T>
void check_limits() {
    check_same(std::numeric_limits<T>::min());
    check_same(std::numeric_limits<T>::max());
    check_same(T{0});
    check_same(T{1});
}

}  // namespace

TEST_CASE("codec: integers of every width survive at their limits") {
    check_limits<char>();
    check_limits<signed char>();
    check_limits<unsigned char>();
    check_limits<short>();
    check_limits<unsigned short>();
    check_limits<int>();
    check_limits<unsigned>();
    check_limits<long>();
    check_limits<unsigned long>();
    check_limits<long long>();
    check_limits<unsigned long long>();
    check_limits<wchar_t>();
    check_limits<char8_t>();
    check_limits<char32_t>();
    check_same(-1);
    check_same(std::int64_t{-4294967297});
}

TEST_CASE("codec: booleans, enums and bytes survive") {
    check_same(true);
    check_same(false);
    check_same(shop::colour::green);
    check_same(std::byte{0xFF});
}

TEST_CASE("codec: floating point numbers survive bit by bit") {
    check_limits<float>();
    check_limits<double>();
    check_limits<long double>();
    check_same(0.1);
    check_same(0.1F);
    check_same(1.0L / 3.0L);
    check_same(std::numeric_limits<double>::denorm_min());
    check_same(std::numeric_limits<double>::infinity());
    check_same(-std::numeric_limits<float>::infinity());
    CHECK(std::isnan(there_and_back(std::numeric_limits<double>::quiet_NaN())));
    CHECK(std::isnan(there_and_back(std::numeric_limits<float>::quiet_NaN())));
    CHECK(std::signbit(there_and_back(-0.0)));
}

TEST_CASE("codec: strings keep NULs and bytes that are not UTF-8") {
    check_same(std::string());
    check_same(std::string("a\0b", 3));
    check_same(std::string("\xFF\xC0\x80 half: \xE2\x82"));
    check_same(std::string(100'000, 'x'));
    check_same(std::vector<std::string>{"\xFF", std::string("\0", 1), ""});
    check_same(std::u16string(u"h\u00e9"));
    check_same(std::wstring(L"wide"));
    check_same(std::filesystem::path("/tmp/\xFF/x"));
}

TEST_CASE("codec: optionals survive, also of optionals") {
    check_same(std::optional<int>());
    check_same(std::optional<int>(7));
    using nested = std::optional<std::optional<int>>;
    check_same(nested());
    check_same(nested(std::optional<int>()));
    check_same(nested(std::optional<int>(1)));
    check_same(std::vector<std::optional<std::string>>{std::nullopt, "x"});
}

TEST_CASE("codec: variants keep which alternative they hold") {
    using choice = std::variant<std::monostate, int, long, std::string, std::optional<double>, int>;
    check_same(choice());
    check_same(choice(std::in_place_index<1>, 5));
    check_same(choice(std::in_place_index<2>, 5L));
    check_same(choice(std::in_place_index<5>, 5));
    check_same(choice(std::in_place_index<3>, "text"));
    check_same(choice(std::in_place_index<4>, std::nullopt));
    check_same(std::map<std::string, choice>{{"a", choice(std::in_place_index<1>, 2)}});
}

TEST_CASE("codec: tuples, pairs and arrays survive") {
    check_same(std::tuple<>());
    check_same(std::tuple<int, std::string, std::optional<int>>(1, "x", 2));
    check_same(std::pair<std::string, std::vector<int>>("p", {1, 2}));
    check_same(std::array<int, 0>{});
    check_same(std::array<int, 3>{1, 2, 3});
    check_same(std::array<shop::sealed, 2>{shop::sealed(1), shop::sealed(2)});
}

TEST_CASE("codec: durations and time points survive") {
    check_same(1500ms);
    check_same(std::chrono::nanoseconds::min());
    check_same(std::chrono::duration<double>(0.25));
    check_same(std::chrono::system_clock::now());
    check_same(std::chrono::steady_clock::now());
    check_same(std::chrono::sys_days(std::chrono::days(20'000)));
}

TEST_CASE("codec: byte ranges survive and travel as CBOR binary") {
    check_same(std::vector<std::byte>{std::byte{0}, std::byte{255}});
    check_same(std::vector<unsigned char>{});
    check_same(std::vector<char>{'a', '\0'});
    check_same(std::array<unsigned char, 4>{1, 2, 3, 4});
    check_same(std::array<std::byte, 0>{});
    check_same(std::vector<std::vector<unsigned char>>{{1}, {}, {2, 3}});
    const auto cbor =
        detail::encode_arguments(std::tuple(std::vector<unsigned char>(1000, 200))).cbor;
    CHECK(cbor.size() == 1 + 3 + 1000);
}

TEST_CASE("codec: vectors and arrays of numbers survive, and travel as their bytes") {
    check_same(std::vector<int>{1, -2, 3});
    check_same(std::vector<double>{0.1, -1e300});
    check_same(std::vector<float>{});
    check_same(std::vector<std::uint16_t>{65'535});
    check_same(std::vector<long double>{0.1L});
    check_same(std::array<float, 2>{0.1F, 2});
    const auto cbor = detail::encode_arguments(std::tuple(std::vector<double>(1000, 0.1))).cbor;
    CHECK(cbor.size() == 1 + 3 + 8000);
}

TEST_CASE("codec: containers of everything survive") {
    check_same(std::vector<bool>{true, false, true});
    check_same(std::deque<int>{1, 2});
    check_same(std::list<std::string>{"a", "b"});
    check_same(std::set<int>{3, 1, 2});
    check_same(std::multiset<int>{1, 1, 2});
    check_same(std::unordered_set<std::string>{"x", "y"});
    check_same(std::map<int, std::vector<double>>{{1, {0.5}}, {2, {}}});
    check_same(std::map<std::pair<int, int>, std::string>{{{1, 2}, "a"}});
    check_same(std::multimap<int, int>{{1, 1}, {1, 2}});
    check_same(std::unordered_map<std::string, std::optional<int>>{{"a", 1}, {"b", std::nullopt}});
    check_same(std::set<std::string, shop::by_length>{"a", "bb"});
    check_same(std::vector<
               std::map<std::string, std::variant<int, std::tuple<bool, std::chrono::seconds>>>>{
        {{"k", std::tuple(true, 3s)}}});
}

TEST_CASE("codec: the user's own types survive, alone and inside containers") {
    check_same(shop::item{"pen", 3});
    check_same(shop::sealed(4));
    check_same(std::vector<shop::item>{{"a", 1}, {"b", 2}});
    check_same(std::optional<shop::sealed>(shop::sealed(9)));
    check_same(
        std::map<std::string, std::variant<shop::item, shop::sealed>>{{"k", shop::sealed(1)}});
    check_same(nlohmann::json::parse(R"({"a":[1,null,{"b":2.5}]})"));
}

TEST_CASE("codec: nesting up to the limit survives") {
    nlohmann::json deep = 1;
    for (std::size_t level = 1; level < detail::cbor_depth_limit; ++level) {
        deep = nlohmann::json::array({std::move(deep)});
    }
    check_same(deep);
}

TEST_CASE("codec: descriptors of arguments travel beside them, each once") {
    const carried_descriptor first{std::make_shared<const int>(7)};
    const carried_descriptor second{std::make_shared<const int>(8)};
    const auto made = detail::encode_arguments(std::tuple(std::vector{first, second}, 1, second));
    REQUIRE(made.attachments.size() == 2);
    CHECK(made.attachments[0] == first.descriptor);
    CHECK(made.attachments[1] == second.descriptor);
    CHECK(detail::parse_cbor(made.cbor) == nlohmann::json::parse("[[0, 1], 1, 1]"));
    using arguments = std::tuple<std::vector<carried_descriptor>, int, carried_descriptor>;
    const auto arrived = detail::decode_arguments<arguments>(made.cbor, made.attachments);
    CHECK(std::get<0>(arrived)[1].descriptor == second.descriptor);
    CHECK(std::get<2>(arrived).descriptor == second.descriptor);
    CHECK(detail::decoder(made.cbor).descriptor(0) == nullptr);
}

TEST_CASE("codec: a type tells whether it may hold descriptors, the user's types always may") {
    using detail::may_carry;
    CHECK_FALSE(may_carry<std::map<std::string, std::vector<std::optional<double>>>>);
    CHECK_FALSE(may_carry<std::tuple<int, std::variant<bool, std::string>, std::array<char, 3>>>);
    CHECK(may_carry<std::map<int, std::optional<carried_descriptor>>>);
    CHECK(may_carry<std::variant<int, std::pair<int, carried_descriptor>>>);
    CHECK(may_carry<shop::item>);
}

TEST_CASE("codec: descriptors of a result travel beside it") {
    const carried_descriptor value{std::make_shared<const int>(7)};
    const auto made = detail::encode_result(value);
    REQUIRE(made.attachments.size() == 1);
    const auto arrived = detail::decode_value<carried_descriptor>(made.cbor, made.attachments);
    CHECK(arrived.descriptor == value.descriptor);
}

TEST_CASE("codec: type names are for people") {
    CHECK(detail::type_name(typeid(std::string)) == "std::string");
    CHECK(detail::type_name(typeid(std::vector<std::vector<std::string>>)) ==
          "std::vector<std::vector<std::string>>");
    CHECK(detail::type_name(typeid(std::map<std::string, int>)) == "std::map<std::string, int>");
    CHECK(detail::type_name(typeid(std::unordered_map<int, int>)) ==
          "std::unordered_map<int, int>");
    CHECK(detail::type_name(typeid(shop::item)) == "shop::item");
}

static_assert(detail::json_writable<shop::item> && detail::json_readable<shop::item>);
static_assert(detail::json_writable<shop::sealed> && detail::json_readable<shop::sealed>);
static_assert(!detail::json_writable<shop::silent> && !detail::json_readable<shop::silent>);
static_assert(detail::is_view<std::string_view> && detail::is_view<std::span<int>>);
static_assert(!detail::is_view<std::string> && !detail::is_view<std::vector<int>>);
static_assert(detail::is_pointer<int*> && detail::is_pointer<void (*)()> &&
              detail::is_pointer<std::nullptr_t>);

}  // namespace codec_test
