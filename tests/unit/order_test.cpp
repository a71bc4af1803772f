// SPDX-License-Identifier: BSL-1.0
// The order of one worker: a block of bytes that can be moved, sent and read by any child.
#include "protocol/order/order_builder.hpp"
#include "protocol/order/order_writer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace order_test {

using namespace cohort;
using protocol::order_block;
using protocol::order_builder;
using protocol::order_writer;
using protocol::worker_order;

namespace {

std::vector<std::string> texts_of(const worker_order& order, protocol::text_table table) {
    std::vector<std::string> texts;
    for (char* const* text = order.table(table); *text != nullptr; ++text)
        texts.emplace_back(*text);
    return texts;
}

std::vector<int> numbers(const worker_order& order, protocol::list_ref<std::int32_t> list) {
    return {order.begin(list), order.begin(list) + list.count};
}

order_block example() {
    order_writer order;
    order.add_candidate("/bin/true");
    order.add_argument("true");
    order.add_variable("A=b");
    order.add_variable_with_pid("P=/proc/", "/fd/60");
    order.head.directory = order.add_descriptor(11);
    order.set_working_directory("/tmp");
    order.open(0, "/dev/null", O_RDONLY);
    order.place(7, 12);
    order.place_memory_file(60, 13);
    order.place(1, -1);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(3, &cpus);
    order.set_affinity({&cpus, 1});
    order.call("nice", "nice", SYS_getpriority, {0, 0});
    order.call_with(std::string_view("\0b", 2), 1, "limit", "limit", SYS_prlimit64, {7});
    order.write("oom_score_adj", "/proc/file", "5");
    order.head.cgroup = order.add_descriptor(15);
    order.head.parent = 4711;
    return order.finish();
}

/// What a plan becomes.
struct built {
    explicit built(detail::spawn_plan p) : plan(std::move(p)) { from.pid = 4711; }
    detail::spawn_plan plan;
    protocol::caller from;
    protocol::worker_plans workers{plan};
    order_builder builder{plan, workers, from, {1024, "program", 0}};
    protocol::worker_resources with;
};

detail::spawn_plan plan_of(std::vector<std::string> argv, int workers = 2) {
    detail::spawn_plan plan;
    plan.settings.nprocs = workers;
    plan.programs.push_back({std::move(argv), {}});
    return plan;
}

}  // namespace

TEST_CASE("order: a block that was copied holds the same, at its own addresses") {
    const auto original = example();
    order_block copy = original;
    copy.rebase();
    CHECK(texts_of(*copy, copy->candidates) == std::vector<std::string>{"/bin/true"});
    CHECK(texts_of(*copy, copy->argv) == std::vector<std::string>{"true"});
    CHECK(texts_of(*copy, copy->envp) ==
          std::vector<std::string>{"A=b", "P=/proc/0000000000/fd/60"});
    CHECK(copy->table(copy->argv)[0] != original->table(original->argv)[0]);
    CHECK(texts_of(*original, original->argv) == std::vector<std::string>{"true"});
    CHECK(std::string(copy->text(copy->working_directory)) == "/tmp");
    CHECK(copy->descriptor(copy->directory) == 11);
    CHECK(copy->descriptor(copy->cgroup) == 15);
    cpu_set_t cpus;  // the order aligns nothing: the kernel reads the mask as bytes
    std::memcpy(&cpus, copy->begin(copy->affinity), sizeof cpus);
    CHECK(CPU_ISSET(3, &cpus));
    const auto steps = copy->all_steps();
    REQUIRE(steps.size() == 3);
    CHECK(steps[0].call == SYS_getpriority);
    CHECK(steps[0].data_at == -1);
    CHECK(steps[1].arguments[0] == 7);
    CHECK(steps[1].data_at == 1);
    CHECK(std::string_view(copy->text(steps[1].data), 2) == std::string_view("\0b", 2));
    CHECK(copy->text(steps[2].data) == std::string("5"));
    CHECK(order_builder::step_of(*copy, 2) ==
          std::pair<std::string, std::string>("oom_score_adj", "writing 5 to /proc/file"));
}

TEST_CASE("order: before each child its descriptors are where they were at first") {
    auto block = example();
    CHECK(numbers(*block, block->sources) == std::vector<int>{-1, 12, 13, -1});
    CHECK(numbers(*block, block->kept) == std::vector<int>{11, 12, 13});
    block->begin(block->sources)[1] = 99;  // as a child does that copies it elsewhere
    block.rebase();
    CHECK(numbers(*block, block->sources) == std::vector<int>{-1, 12, 13, -1});
}

TEST_CASE("order: one that comes by a file gets the numbers of the descriptors that come with it") {
    const auto sent = example();
    order_block arrived(sent.bytes().size());
    std::memcpy(arrived.bytes().data(), sent.bytes().data(), sent.bytes().size());
    const int descriptors[] = {21, 22, 23, 25};
    take_over(arrived, descriptors);
    CHECK(arrived->descriptor(arrived->directory) == 21);
    CHECK(numbers(*arrived, arrived->sources) == std::vector<int>{-1, 22, 23, -1});
    CHECK(arrived->descriptor(arrived->cgroup) == 25);
    CHECK(texts_of(*arrived, arrived->envp) ==
          std::vector<std::string>{"A=b", "P=/proc/0000000000/fd/60"});
    CHECK(order_builder::move_of(*arrived, 0) == "open(\"/dev/null\")");
    CHECK(order_builder::move_of(*arrived, 1) == "descriptor 7");
}

TEST_CASE("order: one that is cut short, or lacks descriptors, is refused") {
    const auto sent = example();
    const int descriptors[] = {21, 22, 23, 25};
    for (std::size_t length = 0; length < sent.bytes().size(); length += 8) {
        order_block arrived(length);
        std::ranges::copy(sent.bytes().first(length), arrived.bytes().begin());
        CHECK_THROWS_AS(take_over(arrived, descriptors), std::runtime_error);
    }
    order_block arrived = sent;
    CHECK_THROWS_AS(take_over(arrived, std::span(descriptors).first(3)), std::runtime_error);
}

TEST_CASE("order: a list that points out of the block is refused") {
    const int descriptors[] = {21, 22, 23, 25};
    const auto refused = [&](auto spoil) {
        order_block arrived = example();
        spoil(*arrived);
        CHECK_THROWS_AS(take_over(arrived, descriptors), std::runtime_error);
    };
    refused([](worker_order& o) { o.argv.count = 1 << 20; });
    refused([](worker_order& o) { o.envp.offset = o.size; });
    refused([](worker_order& o) { o.moves.count += 1; });
    refused([](worker_order& o) { o.kept.offset = o.size - 4; });
    refused([](worker_order& o) { o.affinity.count = ~0U; });
    refused([](worker_order& o) { o.steps.count = 1 << 20; });
    refused([](worker_order& o) { o.steps.offset -= 8; });
    refused([](worker_order& o) { o.slots.offset = ~0U; });
    refused([](worker_order& o) { o.slots.offset = 0; });  // there is the head
    refused([](worker_order& o) { o.pid_fields.count = 1 << 20; });
}

TEST_CASE("order: a text or a slot that is not in the block is refused") {
    const int descriptors[] = {21, 22, 23, 25};
    const auto refused = [&](auto spoil) {
        order_block arrived = example();
        spoil(*arrived);
        CHECK_THROWS_AS(take_over(arrived, descriptors), std::runtime_error);
    };
    refused([](worker_order& o) { o.working_directory.offset = o.size; });
    refused([](worker_order& o) { o.working_directory.length -= 1; });  // no NUL behind it
    refused([](worker_order& o) { o.begin(o.moves)[0].path.length = ~0U; });
    refused([](worker_order& o) { o.begin(o.moves)[1].source = 4; });
    refused([](worker_order& o) { o.begin(o.moves)[1].target = -1; });
    refused([](worker_order& o) { o.begin(o.steps)[1].data.length = ~0U; });
    refused([](worker_order& o) { o.begin(o.steps)[2].file.offset = o.size; });
    refused([](worker_order& o) { o.begin(o.steps)[0].told.length += 1; });
    refused([](worker_order& o) { o.begin(o.steps)[1].data_at = 4; });
    refused([](worker_order& o) { o.directory = 4; });
    refused([](worker_order& o) { o.cgroup = -2; });
    refused([](worker_order& o) { o.begin(o.pid_fields)[0].offset = o.size - 10; });
    refused([](worker_order& o) { o.begin(o.pid_fields)[0].suffix.offset = o.size; });
    refused([](worker_order& o) { const_cast<char**>(o.table(o.argv))[0] += o.size; });
    refused([](worker_order& o) { const_cast<char**>(o.table(o.envp))[2] += 1; });  // its last
}

TEST_CASE("order: whichever word is damaged, all that is left can be read, or it is refused") {
    const int descriptors[] = {21, 22, 23, 25};
    const auto sent = example();
    int refusals = 0;
    for (std::size_t at = 0; at + 4 <= sent.bytes().size(); at += 4)
        for (const std::uint32_t value : {0U, 1U, sent->size - 1, sent->size, ~0U}) {
            order_block arrived = sent;
            std::memcpy(arrived.bytes().data() + at, &value, sizeof value);
            try {
                take_over(arrived, descriptors);
            } catch (const std::runtime_error&) {
                ++refusals;
                continue;
            }
            std::size_t read = 0;  // AddressSanitizer looks at each of these
            for (const auto table : {arrived->candidates, arrived->argv, arrived->envp})
                for (const auto& text : texts_of(*arrived, table))
                    read += text.size();
            if (const char* directory = arrived->text(arrived->working_directory))
                read += std::strlen(directory);
            for (const auto& move : arrived->all_moves())
                if (const char* path = arrived->text(move.path))
                    read += std::strlen(path);
            CHECK(read < sent.bytes().size() * 16);
            CHECK(numbers(*arrived, arrived->sources).size() == arrived->moves.count);
        }
    CHECK(refusals > 100);
}

TEST_CASE("order: more text than any program could be given is refused as the kernel does") {
    order_writer order;
    order.add_argument(std::string(257 << 20, 'x'));
    try {
        (void)order.finish();
        FAIL("it was written");
    } catch (const std::system_error& e) {
        CHECK(e.code() == std::errc::argument_list_too_long);
    }
}

TEST_CASE("order: a program without a slash is looked for in the PATH that the worker has") {
    auto plan = plan_of({"tool"});
    plan.settings.where.set_variable("PATH", "/a:/b");
    built of(plan);
    const auto block = of.builder.build(0, of.with);
    CHECK(texts_of(*block, block->candidates) == std::vector<std::string>{"/a/tool", "/b/tool"});
    CHECK(of.builder.program_of(0) == "tool");
}

TEST_CASE("order: workers with programs of their own get them by their index") {
    auto plan = plan_of({"first"});
    plan.programs.push_back({{"second"}, {}});
    built of(plan);
    for (const int index : {0, 1, 0}) {
        const auto block = of.builder.build(index, of.with);
        CHECK(texts_of(*block, block->argv)[0] == (index == 0 ? "first" : "second"));
    }
}

TEST_CASE("order: a standard stream is placed, opened, joined or inherited") {
    using kind = protocol::stream_source::kind;
    built of(plan_of({"true"}));
    of.with.streams[0] = {kind::place, 70, {}, 0};
    of.with.streams[1] = {kind::open, -1, "log", O_WRONLY | O_TRUNC};
    of.with.streams[2] = {kind::join, -1, {}, 0};
    const auto block = of.builder.build(0, of.with);
    const auto moves = block->all_moves();
    REQUIRE(moves.size() >= 3);
    CHECK(block->descriptor(moves[0].source) == 70);
    CHECK(block->text(moves[1].path) == std::string("log"));
    CHECK(moves[1].open_flags == (O_WRONLY | O_TRUNC));
    CHECK(moves[2].target == 2);
    CHECK(moves[2].joined == 1);
    of.with.streams = {};
    const auto inherited = of.builder.build(0, of.with);
    for (const auto& move : inherited->all_moves())
        CHECK(move.target > 2);
}

TEST_CASE("order: the record keeps out of the way of the descriptors that the user places") {
    auto plan = plan_of({"true"});
    plan.settings.where.set_descriptor(STDIN_FILENO, 960);
    built of(plan);
    CHECK(of.builder.record_number_of(0) == 961);
    built few(plan_of({"true"}));
    order_builder middle{few.plan, few.workers, few.from, {960, "program", 0}};
    CHECK(middle.record_number_of(0) == 60);
    order_builder low{few.plan, few.workers, few.from, {20, "program", 0}};
    CHECK(low.record_number_of(0) == 3);
}

TEST_CASE("order: a served worker gets the standard streams of the application, or none") {
    auto plan = plan_of({"true"});
    built of(plan);
    of.with.own_streams = {{-1, 1, -1}};
    const auto block = of.builder.build(0, of.with);
    std::map<int, int> sources;
    for (const auto& move : block->all_moves())
        sources[move.target] = block->descriptor(move.source);
    CHECK(sources.at(1) == 1);
    CHECK(sources.at(2) == -1);
}

}  // namespace order_test
