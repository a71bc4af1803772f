// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/record_reader.hpp"

#include "base/files/dispose.hpp"
#include "protocol/record/control.hpp"
#include "protocol/record/error_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace cohort::groups {

namespace {

// An error file up to this size is read whole. Of a larger one a head and a tail are read, each
// half as long as this.
constexpr std::uint64_t error_file_limit = protocol::record_limit;
// The first read: it holds the order, the progress and most results.
constexpr std::uint64_t first_read = 4096;
// The most that one request reads: the engine's thread does nothing else meanwhile.
constexpr std::uint64_t piece = std::uint64_t{1} << 20;
constexpr std::uint64_t longest_type_name = std::uint64_t{1} << 16;

std::uint64_t size_of(int fd) noexcept {
    struct stat status {};
    return fstat(fd, &status) == 0 && status.st_size > 0
               ? static_cast<std::uint64_t>(status.st_size)
               : 0;
}

/// Whether some of the first `size` bytes were never written. Such bytes cost the worker no memory,
/// but would cost this process some. The number of blocks decides, because lseek(2) with SEEK_HOLE
/// takes a lock: a child that the worker left may hold it by fallocate(2) for as long as it likes.
bool has_hole(int fd, std::uint64_t size) noexcept {
    struct stat status {};
    constexpr std::uint64_t block = 512;
    return ::fstat(fd, &status) == 0 && static_cast<std::uint64_t>(status.st_blocks) * block < size;
}

groups::function_progress progress_of(const protocol::control_contents& contents) {
    groups::function_progress progress;
    progress.entered = contents.entered_at.has_value();
    progress.called = contents.called_at.has_value();
    progress.exit_called = contents.exit_called_at;
    return progress;
}

/// One read of a record. Its requests to the reactor keep it alive.
class reading : public std::enable_shared_from_this<reading> {
public:
    reading(const record_readers& by, base::unique_fd record,
            base::callback<void(record_contents)> then)
        : by_(by), record_(std::move(record)), size_(size_of(record_.get())),
          then_(std::move(then)) {}
    reading(const reading&) = delete;
    reading& operator=(const reading&) = delete;
    ~reading() { close_record(std::move(record_)); }

    void control_file() {
        fill(0, std::min(size_, first_read), [self = shared_from_this()] {
            const auto contents = protocol::read_control(self->bytes_, self->size_);
            if (contents.kind == protocol::payload_kind::returned && !contents.torn)
                return self->result(contents);
            const auto needed = std::min(contents.needed, self->size_);
            self->fill(self->bytes_.size(), needed, [self] { self->finish_failure(); });
        });
    }

    void error_file() {
        if (size_ <= error_file_limit)
            return fill(0, size_, [self = shared_from_this()] { self->finish_error({}); });
        fill(0, error_file_limit / 2, [self = shared_from_this()] {
            self->head_ = std::exchange(self->bytes_, {});
            self->fill(self->size_ - error_file_limit / 2, self->size_, [self] {
                auto tail = std::exchange(self->bytes_, std::move(self->head_));
                self->finish_error(std::move(tail));
            });
        });
    }

private:
    /// Appends the file's bytes from `offset` up to `end` to bytes_, or as many as there are.
    void fill(std::uint64_t offset, std::uint64_t end, base::callback<void()> then) {
        if (offset >= end)
            return then();
        // A read can be short, and a file can shrink: bytes_ is cut to what came.
        const auto before = bytes_.size();
        const auto wanted = std::min(end - offset, piece);
        try {
            bytes_.reserve(before + (end - offset));  // reserves addresses; filling takes memory
            bytes_.resize(before + wanted);
        } catch (const std::exception&) {
            return then();  // no memory: go on with what came before
        }
        by_.loop.read(
            record_.get(), std::span(bytes_).subspan(before), offset,
            [self = shared_from_this(), before, offset, end, then = std::move(then)](int got) {
                const auto came = got > 0 ? static_cast<std::size_t>(got) : 0;
                self->bytes_.resize(before + came);
                self->fill(came ? offset + came : end, end, then);
            });
    }

    /// For a function that returned. Its result may be large, so it is read right into its final
    /// buffer.
    void result(const protocol::control_contents& contents) {
        known_.progress = progress_of(contents);
        known_.progress->returned = contents.finished_at;
        const auto begin = protocol::payload_offset + contents.type_length;
        const auto end = contents.needed;
        if (end <= bytes_.size() || end == protocol::payload_offset) {
            type_ = contents.result_type;
            const auto cbor = contents.result_cbor;
            return finish_result(std::vector(cbor.begin(), cbor.end()));
        }
        if (auto why = refusal_of(begin, end); !why.empty())
            return finish_without_result(end - begin, why);
        fill(bytes_.size(), begin, [self = shared_from_this(), begin, end] {
            const std::string_view all(reinterpret_cast<const char*>(self->bytes_.data()),
                                       self->bytes_.size());
            const auto type =
                all.substr(protocol::payload_offset, begin - protocol::payload_offset);
            self->type_ = type;
            self->bytes_ = {};
            self->fill(begin, end, [self, length = end - begin] {
                if (self->bytes_.size() < length)
                    return self->finish_without_result(length, "could not be read");
                self->finish_result(std::move(self->bytes_));
            });
        });
    }

    /// Why the result is not read; empty: it is read.
    std::string refusal_of(std::uint64_t begin, std::uint64_t end) const {
        if (end - begin > by_.result_limit)
            return fmt::format("is larger than the group's result_limit ({} bytes)",
                               by_.result_limit);
        if (begin - protocol::payload_offset > longest_type_name)
            return "has a type whose name is too long";
        return has_hole(record_.get(), end) ? "was not written whole" : "";
    }

    void finish_without_result(std::uint64_t length, std::string_view why) {
        known_.note = fmt::format("its result ({} bytes) {}", length, why);
        then_(std::move(known_));
    }

    void finish_result(std::vector<std::byte> cbor) {
        known_.result = std::make_shared<detail::result_bytes>(
            detail::result_bytes{std::move(type_), std::move(cbor)});
        then_(std::move(known_));
    }

    /// For a function that did not return.
    void finish_failure() {
        const auto contents = protocol::read_control(bytes_, size_);
        auto& progress = known_.progress.emplace(progress_of(contents));
        const auto at = contents.finished_at;
        if (contents.kind == protocol::payload_kind::none)
            return then_(std::move(known_));
        if (contents.kind == protocol::payload_kind::crashed) {
            progress.crashed = at;
            return parse(contents.crash.size(),
                         [bytes = std::move(bytes_), said = contents.crash](record_contents& into) {
                             into.crash = protocol::read_crash(said);
                         });
        }
        progress.fell_silent = at;
        progress.terminated = contents.kind == protocol::payload_kind::terminated;
        parse(contents.error.size(),
              [bytes = std::move(bytes_), said = contents.error, at](record_contents& into) {
                  into.error = protocol::read_error(said, said.size(), {});
                  if (!into.error)
                      return;
                  into.progress->raised = at;
                  into.progress->fell_silent.reset();
              });
    }

    void finish_error(std::vector<std::byte> tail) {
        parse(size_,
              [bytes = std::move(bytes_), tail = std::move(tail), size = size_](
                  record_contents& into) { into.error = protocol::read_error(bytes, size, tail); });
    }

    /// Lets `work` parse the `size` bytes that the worker wrote, and add to known_. The parsing
    /// thread does that, because a worker may write bytes that take long to parse.
    template <class Work>
    void parse(std::uint64_t size, Work work) {
        if (size == 0)
            return then_(std::move(known_));
        struct job {
            record_contents contents;
            std::optional<Work> work;  // until it is done, because it holds the bytes
        };
        auto parsing = std::make_shared<job>(job{std::move(known_), std::move(work)});
        parsing->contents.note = "its record could not be read: there was no thread, or no memory";
        by_.parsing.run(
            [parsing] {
                (*parsing->work)(parsing->contents);
                parsing->contents.note.clear();
                parsing->work.reset();
            },
            [parsing, then = std::move(then_)] { then(std::move(parsing->contents)); });
    }

    const record_readers by_;
    base::unique_fd record_;
    std::uint64_t size_;
    base::callback<void(record_contents)> then_;
    record_contents known_;
    std::string type_;  // of the result
    std::vector<std::byte> bytes_;
    std::vector<std::byte> head_;
};

}  // namespace

void close_record(base::unique_fd record) noexcept {
    // The last close frees the pages. A small record is closed here, because a thread costs more.
    struct stat status {};
    constexpr blkcnt_t small = 2048;  // in units of 512 bytes
    if (record && ::fstat(record.get(), &status) == 0 && status.st_blocks <= small)
        return;
    base::dispose(std::move(record));
}

void read_record(const record_readers& by, base::unique_fd record, record_kind kind,
                 base::callback<void(record_contents)> then) {
    auto r = std::make_shared<reading>(by, std::move(record), std::move(then));
    if (kind == record_kind::control_file)
        r->control_file();
    else
        r->error_file();
}

}  // namespace cohort::groups
