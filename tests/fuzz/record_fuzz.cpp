// SPDX-License-Identifier: BSL-1.0
// What a worker left may be anything at all: libFuzzer makes it up, and here is what holds for it.
#include "holds.hpp"
#include "protocol/record/control.hpp"
#include "protocol/record/error_json.hpp"
#include "protocol/record/exception_json.hpp"
#include "protocol/record/fields.hpp"
#include "protocol/record/traceback.hpp"

#include <cohort/json.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace cohort;
using namespace cohort::fuzz;
using namespace cohort::protocol;
using namespace cohort::base;

namespace {

bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::optional<error_record> read(const std::string& text) {
    return read_error(bytes_of(text), text.size(), {});
}

bool is_text(const std::string& text, std::size_t limit) {
    return text.size() <= limit && text.find('\0') == std::string::npos && valid_utf8(text) == text;
}

void check_frames(const std::vector<stack_frame>& frames) {
    HOLDS(frames.size() <= frame_limit);
    for (const stack_frame& frame : frames) {
        HOLDS(is_text(frame.module, name_limit));
        HOLDS(is_text(frame.function, name_limit));
        HOLDS(is_text(frame.file, name_limit));
        HOLDS(bytes_of_hex(frame.build_id));
        HOLDS(frame.line >= 0);
    }
}

void check_fields(const error_record& error, std::size_t limit) {
    HOLDS(is_text(error.type, type_limit));
    HOLDS(is_text(error.message, limit));
    HOLDS(is_text(error.trace, limit));
    HOLDS(is_text(error.category, name_limit));
    HOLDS(error.message.size() > text_limit / 2 || error.trace.ends_with(error.message));
    HOLDS(error.worker >= -1);
    HOLDS(error.pid >= 0);
    HOLDS(detail::error_record_access::value(error).size() <= value_limit);
    check_frames(error.frames);
}

void check_error(const std::optional<error_record>& found) {
    if (!found)
        return;
    error_record error = *found;
    check_fields(error, text_limit);
    HOLDS(error.nested.size() <= nested_limit);
    for (const error_record& entry : error.nested) {
        check_fields(entry, nested_text_limit);
        HOLDS(entry.nested.empty());
    }
    HOLDS(read(write_error(error)) == error);
    const std::string brief = write_error(error, short_record_limit);
    HOLDS(brief.size() <= short_record_limit);
    HOLDS(read(brief));
    error.trace = traceback_of(error);
    HOLDS(is_text(error.trace, text_limit));
    HOLDS(error.message.size() > text_limit / 2 || error.trace.ends_with(error.message));
    HOLDS(traceback_of(error) == error.trace);
}

void check_crash(bytes given) {
    const auto crash = read_crash(given);
    if (!crash)
        return;
    check_frames(crash->frames);
    HOLDS(is_text(crash->trace, text_limit));
    HOLDS(crash->trace == traceback_of(*crash));
    HOLDS(read_crash(bytes_of(line_of(json_of(*crash)))) == crash);
}

void check_activities(bytes given) {
    const auto threads = read_activities(given);
    HOLDS(threads.size() <= activity_limit);
    for (const activity& thread : threads) {
        HOLDS(is_text(to_string(thread), crash_limit));
        check_frames(thread.frames);
    }
    const std::string again = "{\"threads\":" + line_of(json_of(threads)) + "}";
    HOLDS(again.size() > crash_limit || read_activities(bytes_of(again)) == threads);
}

/// `given` begins where a worker writes its progress; what it says of lengths is not to be
/// believed.
void check_control(bytes given) {
    std::vector<std::byte> file(progress_offset);
    file.insert(file.end(), given.begin(), given.end());
    const auto contents = read_control(file, file.size());
    const auto lies_within = [&](const void* first, std::size_t size) {
        const auto* at = static_cast<const std::byte*>(first);
        return size == 0 || (at >= file.data() && at + size <= file.data() + file.size());
    };
    HOLDS(lies_within(contents.result_type.data(), contents.result_type.size()));
    HOLDS(lies_within(contents.result_cbor.data(), contents.result_cbor.size()));
    HOLDS(lies_within(contents.error.data(), contents.error.size()));
    HOLDS(contents.needed <= std::max<std::uint64_t>(file.size(), payload_offset));
    check_error(read_error(contents.error, contents.error.size(), {}));
}

std::exception_ptr as_it_is(const process_raised_exception& raised) {
    return std::make_exception_ptr(raised);
}

void check_exception(std::string_view text) {
    std::exception_ptr made;
    try {
        made = exception_in(text, &as_it_is);
    } catch (const std::invalid_argument& e) {
        HOLDS(is_text(e.what(), 200));
        return;
    }
    try {
        std::rethrow_exception(made);
    } catch (const process_exception& e) {
        const std::string json = to_json(e);
        try {
            std::rethrow_exception(exception_in(json, &as_it_is));
        } catch (const process_exception& again) {
            HOLDS(typeid(again) == typeid(e));
            HOLDS(to_json(again) == json);
        }
    }
}

/// Every value in `value`, itself included.
void collect(json& value, std::vector<json*>& found) {
    found.push_back(&value);
    if (value.is_structured())
        for (json& part : value)
            collect(part, found);
}

/// A value that is of another kind, at an edge, or a copy of what stands elsewhere.
json odd_value(const std::vector<json*>& others, std::minstd_rand& random) {
    static const std::vector<json> odd{nullptr,
                                       true,
                                       0,
                                       1,
                                       -1,
                                       11,
                                       INT64_MIN,
                                       UINT64_MAX,
                                       4294967296.5,
                                       1e300,
                                       "",
                                       "m",
                                       "x\n",
                                       "0",
                                       "17e8",
                                       "\u20ac",
                                       std::string(300, '\x01'),
                                       json::array(),
                                       json::object()};
    if (random() % 2 == 0)
        return odd[random() % odd.size()];
    return *others[random() % others.size()];
}

}  // namespace

/// Most changes of a byte leave no JSON: half of the time a value is changed as a whole.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t limit, unsigned seed) {
    std::minstd_rand random(seed);
    json whole = parsed({reinterpret_cast<const char*>(data), size});
    if (random() % 2 == 0 || whole.is_discarded())
        return LLVMFuzzerMutate(data, size, limit);
    std::vector<json*> values;
    collect(whole, values);
    const json odd = odd_value(values, random);
    *values[random() % values.size()] = odd;
    const std::string text = line_of(whole);
    if (text.size() > limit)
        return LLVMFuzzerMutate(data, size, limit);
    std::copy(text.begin(), text.end(), data);
    return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes given(reinterpret_cast<const std::byte*>(data), size);
    check_error(read_error(given, size, {}));
    // Of a longer file its head and its tail.
    check_error(read_error(given.first(size / 2), size + 1000, given.subspan(size / 2)));
    check_crash(given);
    check_activities(given);
    check_control(given);
    check_exception({reinterpret_cast<const char*>(data), size});
    return 0;
}
