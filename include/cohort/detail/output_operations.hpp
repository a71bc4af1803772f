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
#include <optional>
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
        return done.lines ? type(line_of(done.lines->front()))
                          : received_access::none<type>(reason_of(done));
    }
};

/// The awaitable of output. A line that is already here it gives without an operation, whose
/// completion would have to go through the executor.
template <class Result>
asio::awaitable<typename Result::type> await_line(group_ref group, call on) {
    run_part here;
    const bool is_here = take_line(group, here);
    group.reset();
    if (is_here)
        co_return typename Result::type(line_of(here));
    completion done = co_await await_completion(std::move(on));
    if (auto error = Result().error(done))
        std::rethrow_exception(std::move(error));
    co_return Result().value(done);
}

/// A call of output.
template <class Result, class Token>
auto output_of(group_ref group, call on, Token&& token) {
    if constexpr (is_awaited<Token>)
        return await_line<Result>(std::move(group), std::move(on));
    else
        return begin_call<Result>(std::move(on), std::forward<Token>(token));
}

/// The result of output_batch.
struct lines_result {
    using type = received<std::vector<output_line>>;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    type value(const completion& done) {
        return done.lines ? type(lines_of(*done.lines))
                          : received_access::none<type>(reason_of(done));
    }
};

inline void ask_line(const group_ref& group, std::optional<time_point> until, receiver to) {
    await_output(group, amount::one, until, std::move(to));
}
inline void ask_lines(const group_ref& group, std::optional<time_point> until, receiver to) {
    await_output(group, amount::all, until, std::move(to));
}

/// A write to a worker's standard input.
class input_write {
public:
    input_write(int index, std::string text)
        : index_(index), text_(std::make_shared<std::string>(std::move(text))) {}

    void operator()(const group_ref& group, receiver to) const {
        // A copy of this call may begin again, because Asio's deferred operations may.
        write_input(group, index_, text_.use_count() == 1 ? std::move(*text_) : *text_,
                    std::move(to));
    }

private:
    int index_;
    std::shared_ptr<std::string> text_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
