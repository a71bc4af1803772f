// SPDX-License-Identifier: BSL-1.0
#include "base/values/captured_json.hpp"

#include "base/text/members.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace cohort::base {

base::json json_of(const captured& stream, std::size_t limit) {
    // Where one of them needs less than its half, the other gets the rest.
    const std::size_t left_by_head = limit - std::min(limit, stream.head.size());
    const auto tail = base::tail_of(stream.tail, std::max(limit / 2, left_by_head));
    const auto head = base::head_of(stream.head, limit - tail.size());
    const std::size_t cut = stream.head.size() - head.size() + stream.tail.size() - tail.size();
    base::json object = base::json::object();
    base::put(object, "head", base::clean(head));
    base::put(object, "tail", base::clean(tail));
    base::put(object, "total", stream.total, 0);
    base::put(object, "lost", stream.lost() + cut, 0);
    return object;
}

captured captured_in(const base::json& object) {
    captured stream;
    stream.head = shared_text(base::clean(base::text_at(object, "head")));
    stream.tail = shared_text(base::clean(base::text_at(object, "tail")));
    stream.total = base::integer_at<std::uint64_t>(object, "total").value_or(0);
    // A replaced byte has three, so the sizes do not show it.
    const auto lost = base::integer_at<std::uint64_t>(object, "lost").value_or(0);
    if (lost != stream.lost())
        detail::captured_access::lost(stream) = lost;
    return stream;
}

}  // namespace cohort::base
