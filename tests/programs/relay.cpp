// SPDX-License-Identifier: BSL-1.0
// Stands between a launcher and an agent, and spoils the link when the test says so:
//     relay SOCKET HOST [FAULT...] -- agent arguments...
// It connects to the test's Unix socket, says the host's name there, and then takes one fault a
// line. It answers each with "done" when it has begun. Faults in the arguments begin before
// anything has passed. A fault names a direction, "to" the agent or "back" from it:
//
//     delay DIRECTION MS   each byte comes so much later
//     rate DIRECTION KB    no more kilobytes a second pass, and what comes faster is not read
//     stop DIRECTION       nothing is read any more
//     go DIRECTION         it is again, and nothing is dropped any more
//     drop DIRECTION       all is read, nothing passes
//     close DIRECTION      both of its ends are closed
//     garbage DIRECTION    bytes that are no frame pass
//     repeat DIRECTION     the last frame that was no beat passes once more
//     cut DIRECTION        of the next frame only the first half passes, then the end of file
//     corrupt DIRECTION    the last byte of the next frame's header or body is another one
//     close origin, close agent    all ends on that side are closed
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using std::chrono::steady_clock;

constexpr std::size_t greeting_size = 16;
constexpr std::size_t kind_at = 20;  // in a frame
constexpr char beat = 15;
constexpr std::size_t most_at_a_rate = 4;  // units that wait

void close_fd(int& fd) {
    if (fd >= 0)
        ::close(fd);
    fd = -1;
}

/// One way through the relay. It passes the greeting and frames as wholes.
class direction {
public:
    int in = -1;
    int out = -1;

    bool reads() const {
        return in >= 0 && !is_stopped_ && (rate_ == 0 || later_.size() < most_at_a_rate);
    }
    bool waits_for_room() const { return out >= 0 && is_due(); }
    /// In milliseconds, as for poll(2).
    int pause() const {
        if (later_.empty() || out < 0)
            return -1;
        const auto left = later_.front().due - steady_clock::now();
        return std::max(
            0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    }

    void read() {
        std::array<char, 65'536> buffer;
        const auto got = ::read(in, buffer.data(), buffer.size());
        if (got > 0) {
            if (!is_dropping_)
                whole_.append(buffer.data(), static_cast<std::size_t>(got));
            take_units();
        } else if (got == 0 || errno != EINTR) {
            close_fd(in);
            pass(std::exchange(whole_, {}));
            is_ended_ = true;
            end_if_empty();
        }
    }
    void write() {
        if (!is_due())
            return;
        auto& bytes = later_.front().bytes;
        const auto done = ::write(out, bytes.data(), bytes.size());
        if (done < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (done < 0)  // nobody reads any more
            return close();
        bytes.erase(0, static_cast<std::size_t>(done));
        if (bytes.empty())
            later_.pop_front();
        end_if_empty();
    }
    void close() {
        close_fd(in);
        close_fd(out);
    }

    void fault(const std::string& what, int number) {
        if (what == "delay")
            delay_ = std::chrono::milliseconds(number);
        else if (what == "rate")
            rate_ = static_cast<std::size_t>(number);
        else if (what == "stop")
            is_stopped_ = true;
        else if (what == "drop")
            is_dropping_ = true;
        else if (what == "go")
            is_stopped_ = is_dropping_ = false;
        else if (what == "close")
            close();
        else if (what == "garbage")
            pass(std::string(1000, '?') + "\n");
        else if (what == "repeat")
            pass(last_);
        else if (what == "cut")
            is_cutting_ = true;
        else if (what == "corrupt")
            is_corrupting_ = true;
    }

private:
    struct delayed {
        steady_clock::time_point due;
        std::string bytes;
    };

    bool is_due() const { return !later_.empty() && later_.front().due <= steady_clock::now(); }
    void end_if_empty() {
        if (is_ended_ && later_.empty())
            close_fd(out);
    }
    /// The size of the greeting or frame that begins what has come, 0: not known yet.
    std::size_t unit() const {
        if (!has_greeting_)
            return greeting_size;
        std::uint32_t length = 0;
        if (whole_.size() < sizeof length)
            return 0;
        std::memcpy(&length, whole_.data(), sizeof length);
        return sizeof length + length + 1;
    }
    void take_units() {
        for (auto size = unit(); size != 0 && whole_.size() >= size; size = unit()) {
            auto bytes = whole_.substr(0, size);
            whole_.erase(0, size);
            if (std::exchange(has_greeting_, true))
                take_frame(std::move(bytes));
            else
                pass(std::move(bytes));
        }
    }
    void take_frame(std::string frame) {
        if (frame[kind_at] != beat)
            last_ = frame;
        if (std::exchange(is_corrupting_, false))
            frame[frame.size() - 2] ^= 1;
        if (is_cutting_) {
            frame.resize(frame.size() / 2);
            close_fd(in);
            is_ended_ = true;
        }
        pass(std::move(frame));
    }
    void pass(std::string bytes) {
        if (bytes.empty())
            return;
        auto due = steady_clock::now() + delay_;
        if (rate_ > 0)
            due = last_due_ =
                std::max(due, last_due_) + std::chrono::microseconds(1'000 * bytes.size() / rate_);
        later_.push_back({due, std::move(bytes)});
    }

    std::string whole_;  // what has come of the next unit
    std::string last_;   // frame that was no beat
    std::deque<delayed> later_;
    std::chrono::milliseconds delay_{0};
    std::size_t rate_ = 0;  // 0: none
    steady_clock::time_point last_due_{};
    bool has_greeting_ = false;
    bool is_stopped_ = false;
    bool is_dropping_ = false;
    bool is_cutting_ = false;
    bool is_corrupting_ = false;
    bool is_ended_ = false;  // `out` is closed when all has passed
};

struct both {
    direction to;
    direction back;

    void fault(const std::string& line) {
        std::istringstream words(line);
        std::string what, where;
        int number = 0;
        words >> what >> where >> number;
        if (where == "to" || where == "back")
            return (where == "to" ? to : back).fault(what, number);
        close_fd(where == "origin" ? to.in : to.out);
        close_fd(where == "origin" ? back.out : back.in);
    }
};

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    ::_exit(125);
}

int connect_to(const char* path, const std::string& host) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        fail(path);
    const auto line = host + "\n";
    if (::write(fd, line.data(), line.size()) < 0)
        fail("write");
    return fd;
}

pid_t start(char** command, both& link) {
    int to[2], back[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(back, O_CLOEXEC) != 0)
        fail("pipe2");
    const pid_t pid = ::fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        ::dup2(to[0], STDIN_FILENO);
        ::dup2(back[1], STDOUT_FILENO);
        ::execvp(command[0], command);
        fail(command[0]);
    }
    ::close(to[0]);
    ::close(back[1]);
    link.to.in = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    link.to.out = to[1];
    link.back.in = back[0];
    link.back.out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    for (const int fd : {link.to.out, link.back.out})
        ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    return pid;
}

/// Takes faults from the test, whole lines at a time.
void take_orders(int& control, std::string& unread, both& link) {
    std::array<char, 1000> buffer;
    const auto got = ::read(control, buffer.data(), buffer.size());
    if (got <= 0)
        return close_fd(control);
    unread.append(buffer.data(), static_cast<std::size_t>(got));
    for (auto end = unread.find('\n'); end != unread.npos; end = unread.find('\n')) {
        link.fault(unread.substr(0, end));
        unread.erase(0, end + 1);
        if (::send(control, "done\n", 5, MSG_NOSIGNAL) < 0)
            close_fd(control);
    }
}

/// Until the agent has ended and all that it has written has passed, or can't.
void pass_all(both& link, int control) {
    std::string unread;
    while (link.back.out >= 0 || link.back.in >= 0 || link.to.out >= 0) {
        std::array<pollfd, 5> all{};
        all[0] = {control, POLLIN, 0};
        int pause = -1, at = 1;
        for (auto* way : {&link.to, &link.back}) {
            all[at++] = {way->reads() ? way->in : -1, POLLIN, 0};
            // Without an event to wait for, poll still tells that nobody reads any more.
            const short wanted = way->waits_for_room() ? POLLOUT : 0;
            all[at++] = {way->out, wanted, 0};
            if (const int p = way->pause(); p > 0 && (pause < 0 || p < pause))
                pause = p;
        }
        if (::poll(all.data(), all.size(), pause) < 0 && errno != EINTR)
            fail("poll");
        at = 1;
        for (auto* way : {&link.to, &link.back}) {
            if (all[at++].revents != 0)
                way->read();
            const auto room = all[at++].revents;
            if ((room & POLLERR) != 0)
                way->close();
            else if (room != 0)
                way->write();
        }
        if (all[0].revents != 0)
            take_orders(control, unread, link);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int at = 3;
    while (at < argc && std::strcmp(argv[at], "--") != 0)
        ++at;
    if (at + 1 >= argc) {
        std::fprintf(stderr, "usage: relay SOCKET HOST [FAULT...] -- program [argument...]\n");
        return 2;
    }
    const int control = connect_to(argv[1], argv[2]);
    both link;
    const pid_t agent = start(argv + at + 1, link);
    ::signal(SIGPIPE, SIG_IGN);
    for (int i = 3; i < at; ++i)
        link.fault(argv[i]);
    pass_all(link, control);
    int status = 0;
    ::waitpid(agent, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
