// SPDX-License-Identifier: BSL-1.0
#include <cohort/function.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

namespace shop_fn {
struct item {
    std::string name;
    int count = 0;
    friend bool operator==(const item&, const item&) = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(item, name, count)
}  // namespace shop_fn

namespace function_test {

using namespace cohort;

namespace {

int add(int index, int a, const std::string& b) { return index + a + static_cast<int>(b.size()); }
void nothing(int) noexcept {}
struct holder {
    static std::string twice(int, std::string text) { return text + text; }
};
shop_fn::item relabel(int index, shop_fn::item i) { return {i.name + "!", i.count + index}; }
int throws(int, int) { throw std::out_of_range("too far"); }
int constant(int) { return 5; }

template <class T>
T result_of(const detail::spawn_plan& plan, int index) {
    const auto made = plan.function->invoke(index, plan.arguments, {});
    CHECK(made.type == typeid(T).name());
    return detail::decode_value<T>(made.cbor);
}

}  // namespace

static_assert(
    std::is_same_v<detail::function_traits<decltype(&add)>::stored, std::tuple<int, std::string>>);
static_assert(!std::is_aggregate_v<detail::function_work<&add>>);

TEST_CASE("function: arguments are kept as Fn's parameter types and Fn is called with the index in "
          "front") {
    CHECK(result_of<int>(function<add>(10, "mnist").plan(), 3) == 18);
    CHECK(result_of<int>(function<&add>('\1', std::string("x")).plan(), 0) == 2);
    CHECK(result_of<std::string>(function<holder::twice>("ab").plan(), 0) == "abab");
    CHECK(result_of<shop_fn::item>(function<relabel>(shop_fn::item{"a", 1}).plan(), 4) ==
          shop_fn::item{"a!", 5});
    CHECK(result_of<int>(function<constant>().plan(), 0) == 5);
}

TEST_CASE("function: a lambda without captures is a function") {
    CHECK(result_of<double>(function<[](int index, double x) { return x * index; }>(1).plan(), 2) ==
          2.0);
    CHECK(result_of<int>(function<[](int index) noexcept { return index; }>().plan(), 7) == 7);
}

TEST_CASE("function: void gives a result without type and bytes") {
    const auto plan = function<nothing>().plan();
    const auto made = plan.function->invoke(0, plan.arguments, {});
    CHECK(made.type.empty());
    CHECK(made.cbor.empty());
    CHECK(plan.function->invoke(0, {}, {}).type.empty());
}

TEST_CASE("function: an exception of Fn leaves the thunk as it is") {
    const auto plan = function<throws>(1).plan();
    CHECK_THROWS_WITH_AS(plan.function->invoke(0, plan.arguments, {}), "too far",
                         std::out_of_range);
}

TEST_CASE("function: the same function has one node, two functions have two") {
    CHECK(function<add>(1, "").plan().function == function<&add>(2, "b").plan().function);
    CHECK(function<nothing>().plan().function != function<constant>().plan().function);
}

}  // namespace function_test
