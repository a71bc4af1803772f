// SPDX-License-Identifier: BSL-1.0
// How large a class may be.
#include "class_scan.hpp"
#include "source_files.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace classes_test {

using namespace cohort::test;

namespace {

constexpr std::size_t most_members = 15;

/// Larger ones, with the reason.
const std::map<std::string, std::string> larger{
    {"include/cohort/detail/plan.hpp: group_settings", "the options that users set, a member each"},
    {"include/cohort/outcome.hpp: outcome", "what users read of a worker, a member each"},
    {"src/protocol/order/worker_order.hpp: worker_order", "a record in shared memory"},
    {"src/protocol/record/control.hpp: control_order", "a record in a file"},
    {"src/share/cuda/driver.hpp: calls", "another library's functions, a member each"},
};

}  // namespace

TEST_CASE("classes: a class has at most 15 data members, so that a reader can hold it in mind") {
    std::set<std::string> found;
    for (const std::string folder : {"include", "src"})
        for (const auto& file : files_in(folder))
            for (const auto& one : class_scan::of(file.lines)) {
                if (one.members <= most_members)
                    continue;
                const auto where = file.path + ": " + one.name;
                found.insert(where);
                CHECK_MESSAGE(larger.contains(where), where << ": " << one.members);
            }
    for (const auto& [where, reason] : larger)
        CHECK_MESSAGE(found.contains(where), where << " needs no exception: " << reason);
}

TEST_CASE("classes: functions, types and constants do not count as data members") {
    const std::vector<std::string> text{
        "namespace a::inline b {",
        "enum class colour { red, green };",
        "template <class T>",
        "class COHORT_API one final : public base<T> {",
        "public:",
        "    one() noexcept = default;",
        "    explicit one(int a) : first_{a}, second_{a} {}",
        "    one& operator=(const one&) = delete;",
        "    friend bool operator==(const one&, const one&) = default;",
        "    int get() const { struct stat is {}; int local = 0; return local; }",
        "    void go(kind how = {}, int then = most);",
        "    using word = int;",
        "    enum class kind { a, b };",
        "    struct forward;",
        "    struct inner {",
        "        int x = 1, y{2};",
        "        std::pair<int, int> z;  // int comment;",
        "    };",
        "    static constexpr int most = 3;",
        "    virtual void pure(std::function<void(int)> then) = 0;",
        "private:",
        "    template <class>",
        "    friend class other;",
        "    int first_ = 0;",
        "    std::atomic<int> second_{0};",
        "    std::function<void(int)> third_;",
        "    inner fourth_{1, 2};",
        "    alignas(64) char fifth_[4] = {';', '{', \"\"[0], '}'};",
        "    std::function<int()> sixth_ = [] { int x; return 1; };",
        "    kind seventh_ = of(1, 2);",
        "};",
        "}",
    };
    const auto found = class_scan::of(text);
    REQUIRE(found.size() == 2);
    CHECK(found[0].name == "inner");
    CHECK(found[0].members == 3);
    CHECK(found[1].name == "one");
    CHECK(found[1].members == 7);
}

}  // namespace classes_test
