// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/bodies.hpp"
#include "hosts/values/wire.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/output.hpp>
#include <cohort/usage.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

// What the origin and an agent tell each other besides plans and ends.
namespace cohort::multihost {

/// The first that an agent says.
struct hello {
    // Of this format: other versions begin with it, too, and nothing else of them is read.
    static constexpr std::uint32_t current_version = 1;

    std::uint32_t version = current_version;
    std::string program;  // the build ID in hexadecimal
    std::string library;  // the same
    std::string host;
    std::vector<std::string> abilities;
    pid_t pid = 0;

    friend bool operator==(const hello&, const hello&) = default;
};

/// The answer to it: how the agent is to change itself.
struct welcome {
    std::vector<detail::env_change> env;  // in their order
    std::optional<std::string> working_directory;
    duration host_timeout{0};
    bool must_enter = false;  // the directory: it can't do without

    friend bool operator==(const welcome&, const welcome&) = default;
};

/// All workers have started.
struct started_workers {
    std::vector<pid_t> pids;  // by index

    friend bool operator==(const started_workers&, const started_workers&) = default;
};

struct used_resources {
    std::vector<worker_usage> workers;
    int error = 0;  // of errno: why it is not known

    friend bool operator==(const used_resources&, const used_resources&) = default;
};

struct signal_request {
    std::optional<int> index;  // empty: all workers
    int signo = 0;

    friend bool operator==(const signal_request&, const signal_request&) = default;
};

/// This worker has started later than its group.
struct begun_worker {
    int index = 0;
    pid_t pid = 0;

    friend bool operator==(const begun_worker&, const begun_worker&) = default;
};

/// This worker has failed.
struct failed_worker {
    int index = 0;
    far_clock at{0};

    friend bool operator==(const failed_worker&, const failed_worker&) = default;
};

/// By a signal that the agent was sent at its host: scancel(1) does so.
struct end_order {
    int signo = 0;

    friend bool operator==(const end_order&, const end_order&) = default;
};

/// How much more of streams may be sent.
struct stream_credit {
    std::optional<int> index;   // of the worker; empty: of all streams of the group together
    stream from = stream::out;  // of the worker
    std::uint64_t bytes = 0;

    friend bool operator==(const stream_credit&, const stream_credit&) = default;
};

/// What stands before bytes of a stream.
struct stream_head {
    int index = 0;
    int attempt = 0;
    stream from = stream::out;
    bool is_end = false;           // of the stream of this start
    std::uint64_t lost_lines = 0;  // were left out before these bytes
    std::uint64_t lost_bytes = 0;

    friend bool operator==(const stream_head&, const stream_head&) = default;
};

/// What stands before bytes for a worker's standard input.
struct input_head {
    int index = 0;
    bool is_end = false;  // no more follow

    friend bool operator==(const input_head&, const input_head&) = default;
};

/// The answer to the oldest bytes for a worker's standard input, or end of it, that has none.
struct input_answer {
    int index = 0;
    bool is_taken = false;  // else the worker reads no more

    friend bool operator==(const input_answer&, const input_answer&) = default;
};

/// One of the types above, ladder_spans, or detail::start_failure.
template <class Message>
std::vector<std::byte> write_message(const Message& message);
/// Reads what the other end says, which may be anything.
/// @param workers  how many the group has there: an index is less
template <class Message>
read_value<Message> read_message(std::span<const std::byte> bytes, int workers = 0) noexcept;

/// A head, and the bytes behind it as they are.
template <class Head>
std::vector<std::byte> write_data(const Head& head, std::span<const std::byte> data);
template <class Head>
struct read_data_value {
    read_value<Head> head;
    std::span<const std::byte> data;  // a part of the bytes that were read
};
template <class Head>
read_data_value<Head> read_data(std::span<const std::byte> bytes, int workers) noexcept;

}  // namespace cohort::multihost
