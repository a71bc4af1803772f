// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>
#include <cohort/detail/sink.hpp>
#include <cohort/output.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cohort::output {

// Where each stream of each worker goes: decided from the plan alone, without a system call. Where
// workers may start again, paths and tags have a place for the number of the attempt: see
// at_attempt().

/// What a pipe's text goes into besides targets: outcome::out or err, and the group's queue.
using capture_route = detail::capture_sink;
struct queue_route {
    cohort::when_full full = when_full::drop_oldest;
    std::size_t longest = 0;  // of a line; 0: the bytes as they come
};
/// A file or a stream of this program, which this program writes.
struct target_route {
    std::size_t target = 0;  // its place in group_routes::targets
    cohort::when_full full = when_full::block;
    std::string tag;  // of this worker, written before each line
};
using sink_route = std::variant<capture_route, queue_route, target_route>;

/// Where one output stream of one worker goes.
struct stream_route {
    enum class kind {
        inherited,  // this program's own stream
        given,      // the descriptor `given`, which the plan owns
        file,       // the child opens `path`
        joined,     // stderr goes where stdout goes
        piped,      // through a pipe into `sinks`; without a sink it is read and discarded
    };
    kind what = kind::inherited;
    // Borrowed from the plan, which lives until the last start, because the routes live as long as
    // the group: whoever reads the other end of a pipe must see its end when the worker has ended.
    int given = -1;
    std::string path;
    bool truncates = false;
    std::vector<sink_route> sinks;
};

/// Where the standard input of one worker comes from.
struct input_route {
    enum class kind { inherited, given, file, bytes, feed };
    kind what = kind::file;
    int given = -1;  // borrowed from the plan, as for an output stream
    std::string path;
    std::shared_ptr<const std::string> text;
};

struct worker_routes {
    input_route in;
    stream_route out;
    stream_route err;
    std::string working_directory;            // empty: the caller's
    std::shared_ptr<const std::string> host;  // null: this machine
};

/// Something that this program writes workers' text to.
struct target_plan {
    enum class kind { file, own_stdout, own_stderr };
    kind what = kind::file;
    int first_worker = 0;           // that uses it
    stream from = stream::out;      // its stream
    std::string path;               // of a file
    std::string working_directory;  // to which the path is relative
    detail::file_sink settings;     // of a file
    bool is_raw = false;            // bytes as they come, because one stream alone uses it
    bool is_of_one = false;         // no other worker uses it
};

struct group_routes {
    std::vector<worker_routes> workers;  // by index
    bool has_pipes = false;              // whether a stream of a worker goes through a pipe
    std::vector<target_plan> targets;
    std::size_t buffer = 0;             // of the group's queue, in bytes; 0: it has none
    std::size_t buffer_while_read = 0;  // the same while somebody reads; 0: no other
    std::string log_directory;          // of options::logs(); empty: none
    std::string base_of_logs;           // working directory to which log_directory is relative
    std::string path_of_logs;  // log_directory, absolute if the caller's directory is known. Of a
                               // group on hosts only report.json is made here, beside it
    std::optional<detail::numbering> part;  // see spawn_plan

    /// The index in the whole group of worker `index`.
    int index_in_whole(int index) const noexcept { return part ? part->index + index : index; }
    /// How many descriptors the group's files, and the pipes of the first workers, take in this
    /// process.
    std::uint64_t descriptors(int first_workers) const noexcept;
};

/// What the patterns of paths and tags name.
struct route_names {
    std::string group;
    std::string host;
    std::string random;     // for a run id that was not chosen
    std::string directory;  // the caller's working directory; empty: not known
    // The hosts of the workers, by their indices; empty: all run on this one.
    std::vector<std::shared_ptr<const std::string>> hosts{};

    /// The host of worker `index`; null: this machine.
    std::shared_ptr<const std::string> host_of(int index) const {
        return hosts.empty() ? nullptr : hosts.at(static_cast<std::size_t>(index));
    }
};

/// Which routes of a group are made.
enum class routes_of {
    program,  // all
    host,     // those at the machine of some of its workers
    origin,   // those at the user's program, where the workers are on other machines
};

/// @throws std::invalid_argument  the workers may outlive this process, but need it for a stream
group_routes make_routes(const detail::spawn_plan& plan, const route_names& names,
                         routes_of machine = routes_of::program);

}  // namespace cohort::output
