// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/agent_news.hpp"

namespace cohort::multihost {

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
        news.started = read_message<started_workers>(said.body, place.workers);
        break;
    case frame_kind::not_started:
        news.not_started = read_message<detail::start_failure>(said.body, place.workers);
        break;
    case frame_kind::begun:
        news.begun = read_message<begun_worker>(said.body, place.workers);
        break;
    case frame_kind::used:
        news.used = read_message<used_resources>(said.body, place.workers);
        break;
    case frame_kind::ended:
        news.ended = read_end(said.body, place);
        break;
    default:
        break;
    }
    return news;
}

}  // namespace cohort::multihost
