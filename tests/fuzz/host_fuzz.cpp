// SPDX-License-Identifier: BSL-1.0
// What another host says may be anything at all: libFuzzer makes it up, and here is what holds for
// it.
#include "holds.hpp"
#include "hosts/values/end_bytes.hpp"
#include "hosts/values/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

using namespace cohort;
using namespace cohort::fuzz;
using namespace cohort::multihost;

namespace {

constexpr int workers = 4;

end_reader_place place() {
    using namespace std::chrono_literals;
    end_reader_place here;
    here.now = time_point(100s);
    here.time_of_day = std::chrono::system_clock::time_point(1'800'000'000s);
    here.earliest = here.now - 60s;
    here.workers = workers;
    here.result_limit = 100;
    here.capture_limit = 100;
    return here;
}

template <class T>
bool is_told(const read_value<T>& read) {
    HOLDS(read.value.has_value() == read.problem.empty());
    HOLDS(read.problem.size() < 200);
    return read.value.has_value();
}

void check_streams(const detail::ended_worker& worker) {
    for (const captured* stream : {&worker.out, &worker.err}) {
        HOLDS(stream->head.size() <= 100 && stream->tail.size() <= 100);
        HOLDS(stream->total >= stream->head.size() + stream->tail.size());
    }
}

void check_outcome(const outcome& one) {
    const auto here = place();
    HOLDS(one.index >= 0 && one.index < workers);
    HOLDS(one.attempt >= 0 && one.pid >= 0);
    HOLDS(one.cause >= cause::returned && one.cause <= cause::output_limit);
    HOLDS(here.earliest <= one.started && one.started <= one.ended && one.ended <= here.now);
    HOLDS(one.note().find('\0') == std::string::npos);
    HOLDS(!one.crash || one.crash->frames.size() <= 256);
    const auto* const result = detail::outcome_access::result(one);
    HOLDS(result == nullptr || result->cbor.size() <= 100);
    to_string(one);
}

void check_end(bytes given) {
    auto read = read_end(given, place());
    if (!is_told(read))
        return;
    check_outcome(*read->left);
    check_streams(*read);
    HOLDS(read->past.empty());
    HOLDS(read->event_time >= read->left->started);
    HOLDS(read->event_time <= read->left->ended);
    to_string(read->whole());
    const auto written = write_end(*read, place().now);
    auto again = read_end(written, place());
    HOLDS(is_told(again));
    HOLDS(write_end(*again, place().now) == written);
}

template <class Message>
void check_message(bytes given) {
    auto read = read_message<Message>(given, workers);
    if (!is_told(read))
        return;
    const auto written = write_message(*read);
    auto again = read_message<Message>(written, workers);
    HOLDS(is_told(again));
    HOLDS(write_message(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes given(reinterpret_cast<const std::byte*>(data), size);
    check_end(given);
    check_message<hello>(given);
    check_message<welcome>(given);
    check_message<started_workers>(given);
    check_message<used_resources>(given);
    check_message<ladder_spans>(given);
    check_message<failed_worker>(given);
    check_message<begun_worker>(given);
    check_message<signal_request>(given);
    check_message<stream_credit>(given);
    check_message<input_answer>(given);
    check_message<end_order>(given);
    check_message<detail::start_failure>(given);
    const auto data_read = read_data<stream_head>(given, workers);
    HOLDS(data_read.data.size() <= size);
    is_told(data_read.head);
    return 0;
}
