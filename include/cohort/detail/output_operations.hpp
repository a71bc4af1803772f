// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/output.hpp>
#include <cohort/received.hpp>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The calls about what workers print and are given: their results, and how input is written.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The result of output: one line.
struct line_result {
    using type = received<output_line>;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    type value(const completion& done) {
        return done.lines ? type(line_of(done.lines->front())) : type(reason_of(done));
    }
};

/// The awaitable of output. A line that is already here it gives without an operation, whose
/// completion would have to go through the executor.
template <class Result>
asio::awaitable<typename Result::type> await_line(group_request on) {
    run_part here;
    if (take_line(on.job.group(), here))
        co_return typename Result::type(line_of(here));
    completion done = co_await await_completion(std::move(on));
    if (auto error = Result().error(done))
        std::rethrow_exception(std::move(error));
    co_return Result().value(done);
}

/// The result of output_batch: all lines that there are; empty: no more will come.
struct lines_result {
    using type = std::vector<output_line>;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    type value(const completion& done) { return done.lines ? lines_of(*done.lines) : type(); }
};

/// The result of output_batch with a timeout.
struct lines_in_time_result {
    using type = received<std::vector<output_line>>;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    type value(const completion& done) {
        return done.lines ? type(lines_of(*done.lines)) : type(reason_of(done));
    }
};

/// A write to a worker's standard input, as a job of an operation.
class write_job {
public:
    write_job(group_ref group, int index, std::string text)
        : group_(std::move(group)), index_(index),
          text_(std::make_shared<std::string>(std::move(text))) {}

    void send(receiver to) const {
        if (!group_)
            throw_empty_group("write");
        // A copy of this job may be sent again, because Asio's deferred operations may.
        write_input(group_, index_, text_.use_count() == 1 ? std::move(*text_) : *text_,
                    std::move(to));
    }
    canceller cancelled_by(operation_id id) const noexcept { return {group_, id}; }

private:
    group_ref group_;
    int index_;
    std::shared_ptr<std::string> text_;
};

/// The result of write: nothing.
struct write_result {
    using type = void;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    void value(const completion&) {}
};

/// Calls a handler of the signature void(std::exception_ptr).
struct deliver_written {
    template <class Handler>
    void operator()(Handler&& handler, const completion& done) && {
        std::forward<Handler>(handler)(error_of(done));
    }
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
