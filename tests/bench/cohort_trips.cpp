// SPDX-License-Identifier: BSL-1.0
// Messages by cohort's queues, between two workers of a group or a worker and this process.
#include "trips.hpp"

#include "asio_ticker.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace bench {
namespace {

using cohort::queue;
using array = cohort::shared_array<float>;

template <class T>
T make(std::size_t bytes) {
    if constexpr (std::is_same_v<T, ball>)
        return {};
    else if constexpr (std::is_same_v<T, array>)
        return array(bytes / sizeof(float));
    else
        return T(bytes, 'x');
}

/// What goes back: the value itself, or one more handle of an array, so that it stays known here.
template <class T>
T handed_on(T& value) {
    if constexpr (std::is_same_v<T, array>)
        return value;
    else
        return std::move(value);
}

template <class T>
void send_back(cohort::queue_reader<T> from, cohort::queue_writer<T> to, int messages) {
    cohort::received<T> before;
    for (int i = 0; i < messages; ++i) {
        auto got = from.get();
        to.put(handed_on(*got));
        before = std::move(got);
    }
}

/// Worker 0 measures, worker 1 answers.
template <class T>
std::vector<double> play(int index, queue<T> there, queue<T> back, std::size_t bytes, int count) {
    const trips todo{bytes, count};
    if (index == 1) {
        send_back<T>(there.reader(), back.writer(), todo.all());
        return {};
    }
    auto out = there.writer();
    auto in = back.reader();
    T value = make<T>(bytes);
    return time_each(todo, [&] {
        out.put(handed_on(value));
        value = std::move(*in.get());
    });
}

template <class Result, class Function>
asio::awaitable<void> run_both(Function work, std::size_t index, Result& to) {
    const auto report = co_await cohort::run(std::move(work), 2);
    to = report.outcomes[index].template result<Result>();
}

/// Runs a function in two workers. @return what the one with this index has returned
template <class Result, class Function>
Result run_two(Function work, std::size_t index) {
    Result result{};
    run_beside(nullptr, run_both(std::move(work), index, result));
    return result;
}

template <class T>
std::vector<double> trips_with(const trips& todo) {
    return run_two<std::vector<double>>(
        cohort::function<play<T>>(queue<T>(), queue<T>(), todo.bytes, todo.count), 0);
}

void answer(int, cohort::queue_reader<ball> from, cohort::queue_writer<ball> to) {
    for (const ball& each : from)
        to.put(each);
}

asio::awaitable<void> await_trips(const trips& todo, std::vector<double>& us) {
    using clock = std::chrono::steady_clock;
    queue<ball> there, back;
    auto group = co_await cohort::spawn(cohort::function<answer>(there, back), 1);
    const ball value;
    for (int i = 0; i < todo.all(); ++i) {
        const auto before = clock::now();
        co_await there.put(value);
        (void)co_await back.get();
        if (i >= todo.warm_up())
            us.push_back(std::chrono::duration<double, std::micro>(clock::now() - before).count());
    }
    there.close();
    co_await group.join();
}

/// Worker 0 writes, worker 1 reads and measures.
double pour(int index, queue<ball> line, int messages) {
    if (index == 0) {
        auto out = line.writer();
        for (int i = 0; i < messages; ++i)
            out.put({});
        return 0;
    }
    auto in = line.reader();
    rate speed;
    for (int i = 0; i < messages; ++i) {
        (void)in.get();
        if (i == 0)
            speed.begin();
    }
    return speed.of(messages - 1);
}

double pour_in_batches(int index, queue<ball> line, int messages) {
    constexpr int batch = 1000;
    if (index == 0) {
        auto out = line.writer();
        const std::vector<ball> many(batch);
        for (int left = messages; left > 0; left -= batch)
            out.put_all(std::span(many).first(static_cast<std::size_t>(std::min(left, batch))));
        return 0;
    }
    auto in = line.reader();
    const auto first = static_cast<int>(in.get_some(batch).size());
    rate speed;
    speed.begin();
    for (int got = first; got < messages;)
        got += static_cast<int>(in.get_some(batch).size());
    return speed.of(messages - first);
}

}  // namespace

std::vector<double> trips_of_workers(const trips& todo) {
    return todo.bytes == sizeof(ball) ? trips_with<ball>(todo) : trips_with<std::string>(todo);
}

std::vector<double> trips_of_array(const trips& todo) { return trips_with<array>(todo); }

std::vector<double> trips_of_parent(const trips& todo) {
    std::vector<double> us;
    run_beside(nullptr, await_trips(todo, us));
    return us;
}

double stream_of_workers(int messages) {
    return run_two<double>(cohort::function<pour>(queue<ball>(), messages), 1);
}

double stream_in_batches(int messages) {
    return run_two<double>(cohort::function<pour_in_batches>(queue<ball>(), messages), 1);
}

}  // namespace bench
