// SPDX-License-Identifier: BSL-1.0
#include "group/record_reader.hpp"

#include "record/control.hpp"
#include "record/control_file.hpp"
#include "record/crash_json.hpp"
#include "record/error_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace cohort::group_room {

namespace {

// A foreign error file up to this size is read whole; of a larger one, head and tail of half of it.
constexpr std::uint64_t error_file_limit = record::record_limit;
// Holds the order, the progress and most results.
constexpr std::uint64_t first_read = 4096;

std::uint64_t size_of(int fd) noexcept {
    struct stat status {};
    return fstat(fd, &status) == 0 && status.st_size > 0
               ? static_cast<std::uint64_t>(status.st_size)
               : 0;
}

/// One reading in progress; kept alive by the requests that it has under way.
class reading : public std::enable_shared_from_this<reading> {
public:
    reading(engine::engine& loop, sys::unique_fd record, std::function<void(record_contents)> then)
        : loop_(loop), record_(std::move(record)), size_(size_of(record_.get())),
          then_(std::move(then)) {}

    void control_file() {
        fill(0, std::min(size_, first_read), [self = shared_from_this()] {
            auto contents = record::read_control(self->bytes_, self->size_);
            const auto needed = std::min(contents.needed, self->size_);
            if (needed <= self->bytes_.size())
                return self->finish_control();
            self->fill(self->bytes_.size(), needed, [self] { self->finish_control(); });
        });
    }

    void error_file() {
        if (size_ <= error_file_limit)
            return fill(0, size_, [self = shared_from_this()] { self->finish_error({}); });
        fill(0, error_file_limit / 2, [self = shared_from_this()] {
            self->head_ = std::exchange(self->bytes_, {});
            self->fill(self->size_ - error_file_limit / 2, self->size_, [self] {
                const auto tail = std::exchange(self->bytes_, std::move(self->head_));
                self->finish_error(tail);
            });
        });
    }

private:
    /// Appends the file's bytes from `offset` up to `end` to bytes_, or as many as there are.
    void fill(std::uint64_t offset, std::uint64_t end, std::function<void()> then) {
        if (offset >= end)
            return then();
        // A read can be short, and a file shrink: the piece is cut to what came.
        const auto before = bytes_.size();
        const auto wanted = std::min<std::uint64_t>(end - offset, std::uint64_t{1} << 30);
        try {
            bytes_.resize(before + wanted);
        } catch (const std::bad_alloc&) {
            return then();  // what came before must do
        }
        loop_.read(
            record_.get(), std::span(bytes_).subspan(before), offset,
            [self = shared_from_this(), before, offset, end, then = std::move(then)](int got) {
                const auto came = got > 0 ? static_cast<std::size_t>(got) : 0;
                self->bytes_.resize(before + came);
                self->fill(came ? offset + came : end, end, then);
            });
    }

    void finish_control() {
        const auto contents = record::read_control(bytes_, size_);
        record_contents result;
        auto& progress = result.progress.emplace();
        progress.entered = contents.entered_at.has_value();
        if (contents.kind == record::payload_kind::returned && !contents.torn) {
            progress.returned = contents.finished_at;
            take_result(contents, result);
        } else if (contents.kind == record::payload_kind::crashed) {
            progress.crashed = contents.finished_at;
            result.crash = record::read_crash(contents.crash);
        } else if (contents.kind != record::payload_kind::none) {
            result.error = record::read_error(contents.error, contents.error.size(), {});
            (result.error ? progress.raised : progress.fell_silent) = contents.finished_at;
            progress.terminated = contents.kind == record::payload_kind::terminated;
        }
        then_(std::move(result));
    }

    /// Of any size, so it is not copied.
    void take_result(const record::control_contents& contents, record_contents& into) {
        const auto length = contents.needed - record::payload_offset;
        if (length > 0 && bytes_.size() < contents.needed) {
            into.note = fmt::format("its result ({} bytes) could not be read", length);
            return;
        }
        auto taken = std::make_shared<detail::result_bytes>();
        taken->type = contents.result_type;
        if (length > 0) {
            const auto size = static_cast<std::ptrdiff_t>(contents.result_cbor.size());
            bytes_.resize(static_cast<std::size_t>(contents.needed));
            bytes_.erase(bytes_.begin(), bytes_.end() - size);
            taken->cbor = std::move(bytes_);
        }
        into.result = std::move(taken);
    }

    void finish_error(std::span<const std::byte> tail) {
        record_contents result;
        result.error = record::read_error(bytes_, size_, tail);
        then_(std::move(result));
    }

    engine::engine& loop_;
    sys::unique_fd record_;
    std::uint64_t size_;
    std::function<void(record_contents)> then_;
    std::vector<std::byte> bytes_;
    std::vector<std::byte> head_;
};

}  // namespace

void read_record(engine::engine& loop, sys::unique_fd record, record_kind kind,
                 std::function<void(record_contents)> then) {
    auto r = std::make_shared<reading>(loop, std::move(record), std::move(then));
    if (kind == record_kind::control_file)
        r->control_file();
    else
        r->error_file();
}

}  // namespace cohort::group_room
