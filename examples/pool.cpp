// SPDX-License-Identifier: BSL-1.0
// A TCP server that answers from a pool of workers, each of which has loaded a model.
//   pool [port]     without a port it has a client of its own, and ends when that has all answers
//
// A client sends a word, and gets its translation or why there is none. SIGHUP loads pool-model.txt
// again: the workers are renewed one by one, while the others go on answering.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

using asio::ip::tcp;
using namespace std::chrono_literals;

std::map<std::string, std::string> model;  // each worker has its own

void load_model(const std::string& file) {
    std::ifstream lines(file);
    for (std::string word, translation; lines >> word >> translation;)
        model[word] = translation;
}

std::string translate(const std::string& word) {
    if (word == "crash")
        std::abort();
    while (word == "hang")
        ::pause();
    return model.at(word);
}

asio::awaitable<void> serve(tcp::socket client, cohort::pool& pool) {
    std::string word, answer;
    co_await asio::async_read_until(client, asio::dynamic_buffer(word, 64), '\n',
                                    asio::use_awaitable);
    word.pop_back();
    try {
        const auto limits = cohort::call_limits().wait(5s).run(2s);
        answer = co_await pool.submit(cohort::task<translate>(word), limits);
    } catch (const cohort::process_raised_exception& e) {
        answer = "failed: " + e.error().message;  // its worker lives on
    } catch (const std::exception& e) {           // its worker is lost, and no other call
        answer = e.what();
    }
    co_await asio::async_write(client, asio::buffer(answer), asio::use_awaitable);
}

asio::awaitable<void> listen(tcp::acceptor& acceptor, cohort::pool& pool) {
    for (;;) {
        auto client = co_await acceptor.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor.get_executor(), serve(std::move(client), pool), asio::detached);
    }
}

asio::awaitable<void> obey_signals(cohort::pool& pool) {
    asio::signal_set signals(co_await asio::this_coro::executor, SIGHUP, SIGINT, SIGTERM);
    while (co_await signals.async_wait(asio::use_awaitable) == SIGHUP)
        co_await pool.recycle();
}

asio::awaitable<void> run(cohort::pool& pool, tcp::acceptor& acceptor) {
    const auto how =
        cohort::pool_options(2).at_least(2).initializer(cohort::task<load_model>("pool-model.txt"));
    pool = co_await cohort::start_pool(how);  // when both workers have loaded the model
    co_await cohort::first_of(listen(acceptor, pool), obey_signals(pool));
    co_await pool.drain();
    const auto all = pool.stats();
    fmt::print("calls that threw: {}, that lost their worker: {}\n", all.failed, all.lost);
}

std::string ask(const tcp::endpoint& server, const std::string& word) {
    tcp::iostream connection(server);
    std::string answer;
    connection << word << std::endl;
    std::getline(connection, answer);
    return answer;
}

void be_client(const tcp::endpoint& server) {
    for (const char* word : {"hello", "crash", "hang", "bye", "hello"})
        fmt::print("{}: {}\n", word, ask(server, word));
    std::ofstream("pool-model.new") << "hello salut\n";
    std::filesystem::rename("pool-model.new", "pool-model.txt");
    std::raise(SIGHUP);
    while (ask(server, "hello") != "salut")
        continue;
    fmt::print("hello: salut, from the new model\n");
    std::filesystem::remove("pool-model.txt");
    std::raise(SIGTERM);
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const auto port = static_cast<unsigned short>(argc > 1 ? std::atoi(argv[1]) : 0);
    cohort::pool pool;  // outlives what io runs
    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), port});
    std::jthread client;
    if (argc < 2) {
        std::ofstream("pool-model.txt") << "hello bonjour\n";
        client = std::jthread(be_client, acceptor.local_endpoint());
    }
    asio::co_spawn(io, run(pool, acceptor), [&io](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
        io.stop();
    });
    io.run();
}

// Prints (`...` stands for anything):
//   hello: bonjour
//   crash: worker ... terminated with signal SIGABRT
//   hang: translate ran for longer than 2 s in worker ..., which was stopped
//   bye: failed: map::at
//   hello: bonjour
//   hello: salut, from the new model
//   calls that threw: 1, that lost their worker: 2
