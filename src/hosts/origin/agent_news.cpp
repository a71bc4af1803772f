// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/agent_news.hpp"

#include <new>
#include <utility>

namespace cohort::multihost {
namespace {

template <class T>
void put(read_value<T>& into, read_value<T> came) {
    if (came.lacks_memory)
        throw std::bad_alloc();
    into = std::move(came);
}

}  // namespace

end_reader_place place_at(end_reader_place of_part, const arrival& when) {
    of_part.now = when.at - when.under_way;
    of_part.offset = when.offset;
    of_part.time_of_day =
        when.time_of_day -
        std::chrono::duration_cast<std::chrono::system_clock::duration>(when.under_way);
    return of_part;
}

agent_news read_news(const message& said, const end_reader_place& place) {
    agent_news news;
    news.kind = said.name.kind;
    switch (news.kind) {
    case frame_kind::started:
        put(news.started, read_message<started_workers>(said.body, place.workers));
        break;
    case frame_kind::not_started:
        put(news.not_started, read_message<detail::start_failure>(said.body, place.workers));
        break;
    case frame_kind::begun:
        put(news.begun, read_message<begun_worker>(said.body, place.workers));
        break;
    case frame_kind::used:
        put(news.used, read_message<used_resources>(said.body, place.workers));
        break;
    case frame_kind::ended:
        put(news.ended, read_end(said.body, place));
        break;
    default:
        break;
    }
    return news;
}

}  // namespace cohort::multihost
