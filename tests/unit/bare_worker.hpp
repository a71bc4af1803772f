// SPDX-License-Identifier: BSL-1.0
#pragma once

// Starts tests/programs/bare_worker.cpp directly, with a control file made here, so that no engine
// is needed.

#include "base/sys/memfd.hpp"
#include "protocol/record/control.hpp"
#include "protocol/record/error_json.hpp"
#include "protocol/registry/mark.hpp"

#include <cohort/function.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bare_worker {

using namespace cohort;

inline constexpr const char* program = COHORT_PROGRAM_BARE_WORKER;
inline constexpr int control_number = 60;
inline constexpr int arguments_number = 61;

inline base::unique_fd memory_file(std::span<const std::byte> bytes) {
    std::error_code error;
    base::unique_fd file = base::make_memfd("cohort-test", error);
    REQUIRE(!error);
    REQUIRE(!base::write_at(file.get(), bytes, 0));
    return file;
}

inline std::string read_file(int fd) {
    std::string text;
    std::array<char, 4096> part;
    for (;;) {
        const ssize_t count =
            ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()));
        if (count <= 0)
            return text;
        text.append(part.data(), static_cast<std::size_t>(count));
    }
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

/// The exit status of the program, its output, and its control file.
struct end {
    int status = 0;
    std::string output;  // stdout and stderr
    std::string control;

    protocol::control_contents contents() const {
        return protocol::read_control(bytes_of(control), control.size());
    }
    error_record error() const {
        const auto bytes = contents().error;
        return protocol::read_error(bytes, bytes.size(), {}).value_or(error_record{});
    }
    template <class T>
    T result() const {
        CHECK(contents().result_type == typeid(T).name());
        return detail::decode_value<T>(contents().result_cbor);
    }
    bool exited_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
    bool ended_by(int signo) const { return WIFSIGNALED(status) && WTERMSIG(status) == signo; }
};

inline int duplicated_high(int fd) { return fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 100); }

/// Runs in the child: places both files, redirects its output, and executes the program.
[[noreturn]] inline void execute(int output, int control, int arguments, char* const* argv) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    if (control >= 0)
        ::dup2(control, control_number);
    if (arguments >= 0)
        ::dup2(arguments, arguments_number);
    ::alarm(60);  // so that a worker that hangs fails its test
    ::execv(program, argv);
    ::_exit(126);
}

inline end run_program(std::vector<std::string> args, int control = -1, int arguments = -1,
                       const std::string& name = "some/where/a_rather_long_name") {
    const auto output = memory_file({});
    args.insert(args.begin(), name);
    std::vector<char*> argv;
    for (auto& arg : args)
        argv.push_back(arg.data());
    argv.push_back(nullptr);
    const base::unique_fd high_output(duplicated_high(output.get()));
    const base::unique_fd high_control(duplicated_high(control));
    const base::unique_fd high_arguments(duplicated_high(arguments));
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0)
        execute(high_output.get(), high_control.get(), high_arguments.get(), argv.data());
    end e;
    REQUIRE(::waitpid(child, &e.status, 0) == child);
    e.output = read_file(output.get());
    if (control >= 0)
        e.control = read_file(control);
    return e;
}

inline protocol::function_key key_named(const std::string& name) {
    const end e = run_program({"key", name});
    REQUIRE(e.exited_with(0));
    protocol::function_key key;
    key.offset = std::stoull(e.output);
    const auto hex = e.output.substr(e.output.find(' ') + 1);
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        key.module[key.module_length++] =
            static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return key;
}

inline base::unique_fd control_of(const protocol::function_key& key, int arguments_fd) {
    auto order = protocol::make_order(3, 8, ::getpid(), arguments_fd, key, SIGTERM,
                                      std::chrono::seconds(30));
    order.local_index = 1;
    order.local_size = 2;
    return memory_file(std::as_bytes(std::span(&order, 1)));
}

inline std::string mark_of(int fd) {
    std::error_code error;
    return protocol::to_string({control_number, base::inode(fd, error)});
}

inline end run_worker(const protocol::function_key& key,
                      const std::vector<std::byte>* arguments = nullptr) {
    base::unique_fd arguments_file;
    if (arguments != nullptr)
        arguments_file = memory_file(*arguments);
    const auto control = control_of(key, arguments ? arguments_number : -1);
    return run_program({mark_of(control.get())}, control.get(), arguments_file.get());
}

inline end run_worker(const std::string& function) { return run_worker(key_named(function)); }

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace bare_worker
