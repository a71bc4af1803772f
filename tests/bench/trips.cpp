// SPDX-License-Identifier: BSL-1.0
// Measures messages between two processes: there and back, and in one direction.
#include "trips.hpp"

#include "quantile.hpp"
#include "sections.hpp"

#include <fmt/core.h>

namespace bench {
namespace {

template <class Peer>
Peer find_peer(const std::map<std::string, Peer>& peers, const std::string& name) {
    const auto found = peers.find(name);
    if (found == peers.end())
        throw std::invalid_argument("no such peer: " + name);
    return found->second;
}

}  // namespace

void round_trip(const arguments& words) {
    static const std::map<std::string, run_trips> peers = {
        {"cohort", trips_of_workers},      {"parent", trips_of_parent},
        {"array", trips_of_array},         {"raw", trips_by_socket},
        {"boost", trips_by_boost},         {"pool", trips_of_pool},
        {"pool_raw", trips_of_raw_worker}, {"process", trips_of_processes}};
    const trips todo{static_cast<std::size_t>(words.number("bytes", sizeof(ball))),
                     words.number("trips")};
    const auto us = find_peer(peers, words.text("peer"))(todo);
    fmt::print("{{\"us\": {}, \"p99_us\": {}}}\n", quantile(us, 0.5), quantile(us, 0.99));
}

void one_way(const arguments& words) {
    static const std::map<std::string, run_stream> peers = {{"cohort", stream_of_workers},
                                                            {"batches", stream_in_batches},
                                                            {"raw", stream_by_socket},
                                                            {"boost", stream_by_boost}};
    const double per_second = find_peer(peers, words.text("peer"))(words.number("messages"));
    fmt::print("{{\"per_s\": {}}}\n", per_second);
}

}  // namespace bench
