// SPDX-License-Identifier: BSL-1.0
// What a worker that was taken over can put into a queue, and what it can't do with it.
#include "group_test.hpp"
#include "raw_queue.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

namespace queue_hostile_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::queue_reader;
using cohort::shared_array;

struct job {
    int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(job, number)

struct picky {};
void to_json(nlohmann::json& to, const picky&) { to = 1; }
void from_json(const nlohmann::json&, picky&) { throw std::domain_error("picky refuses"); }

namespace {

template <class T>
void put_payload(const raw_queue<T>& to, std::string_view payload) {
    send_raw(to.writer, header_with(1, 0, payload.size()), std::string(payload));
}

}  // namespace

TEST_CASE("queue hostile: what is no value of the type is a codec_error") {
    const leak_guard guard;
    using namespace std::string_view_literals;
    raw_queue<job> jobs;
    for (const auto payload : {"\xa0"sv, "\xf5"sv}) {  // {} and true
        put_payload(jobs, payload);
        CHECK_THROWS_AS((void)jobs.reader.get(), cohort::codec_error);
    }
    raw_queue<shared_array<int>> arrays;
    for (const auto payload :
         {"\x85\xf6\0\x81\x05\x81\x01\x63<i4"sv,  // 5 elements in no memory
          "\x85\xf6\0\x81\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x81\x01\x63<i4"sv}) {
        put_payload(arrays, payload);
        CHECK_THROWS_AS((void)arrays.reader.get(), cohort::codec_error);
    }
    raw_queue<picky> others;
    put_payload(others, "\x01");
    CHECK_THROWS_AS((void)others.reader.get(), std::domain_error);
}

TEST_CASE("queue hostile: an end that arrives again is of the type and capacity that it was of") {
    const leak_guard guard;
    using numbers = std::vector<double>;
    raw_queue<std::string> texts;
    raw_queue<queue_reader<numbers>> handles;
    const int reader = *cohort::item_to_share(texts.reader).lent.lock();
    const auto put_reader = [&](std::uint64_t type, std::uint64_t capacity, int credits) {
        cohort::detail::encoder to;
        to.array(7);
        to.boolean(false);
        to.unsigned_integer(0);
        credits < 0 ? to.null() : to.unsigned_integer(1);
        to.unsigned_integer(type);
        to.unsigned_integer(capacity);
        to.unsigned_integer(65536);
        to.boolean(true);
        const auto& cbor = to.bytes();
        const std::string payload(reinterpret_cast<const char*>(cbor.data()), cbor.size());
        std::vector<int> with{reader};
        if (credits >= 0)
            with.push_back(credits);
        send_raw(handles.writer,
                 header_with(1, static_cast<std::uint16_t>(with.size()), payload.size()), payload,
                 with);
    };
    put_reader(cohort::detail::type_hash_of<numbers>(), 0, -1);
    CHECK_THROWS_AS((void)handles.reader.get(), cohort::codec_error);

    raw_queue<queue_reader<std::string>> others;
    std::swap(handles.writer, others.writer);
    const int credits = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    put_reader(cohort::detail::type_hash_of<std::string>(), 1, credits);
    CHECK_THROWS_AS((void)others.reader.get(), cohort::codec_error);
    ::close(credits);
    put_reader(cohort::detail::type_hash_of<std::string>(), 0, -1);
    auto same = others.reader.get();
    REQUIRE(same);
    put_payload(texts, std::string(20'000, 'A'));
    CHECK((*same->get() == std::string(20'000, 'A')));
}

}  // namespace queue_hostile_test
