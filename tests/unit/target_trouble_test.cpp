// SPDX-License-Identifier: BSL-1.0
// Targets that fail, hang, end or share what they write to.
#include "target_support.hpp"

#include <atomic>

namespace target_trouble_test {

using namespace target_test;
using target_test::lines;  // not cohort::lines, which another file of this unit may include

TEST_CASE("target trouble: a full disk gives the target up") {
    CHECK(holds([](world& w) {
        const auto to = target::make(w.loop, new_file("/dev/full"), named("logs/0.log"));
        w.add(*to, lines(0, "text\n"));
        w.flush(*to);
        w.expect(to->note() == "logs/0.log: No space left on device after 0 bytes");
        w.run([&] {
            to->add(lines(0, long_text(2'000'000)), when_full::block);
            w.expect(to->has_room());
        });
        w.flush(*to);
        w.expect(to->pending().empty());
        w.run([&] { to->close(); });
    }));
}

TEST_CASE(
    "target trouble: a reader that dies gives the target up, and no signal ends this process") {
    CHECK(holds([](world& w) {
        ::signal(SIGPIPE, SIG_DFL);
        auto pipe = make_pipe();
        const auto to = target::make(w.loop, std::move(pipe.writer), named("stdout"));
        world::called room, written;
        w.run([&] {
            to->add(lines(0, long_text(2'000'000)), when_full::block);
            to->when_room(room.task());
            to->when_written(written.task());
        });
        w.expect(await_event(pipe.reader.get()));
        pipe.reader.reset();
        w.expect(room.comes() && written.comes());
        w.expect(to->note().starts_with("stdout: Broken pipe after "));
        w.run([&] { w.expect(to->has_room()); });
        sigset_t pending;
        w.expect(::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 0);
    }));
}

TEST_CASE("target trouble: O_NONBLOCK that others have set is left alone, and all is written") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const int flags = ::fcntl(pipe.writer.get(), F_GETFL) | O_NONBLOCK;
        ::fcntl(pipe.writer.get(), F_SETFL, flags);
        const auto to = target::make(w.loop, pipe.writer.get(), named("stdout"));
        const auto text = long_text(1'000'000);
        w.add(*to, lines(0, text));
        w.expect(is_full(pipe.writer));
        w.expect(read_from(pipe.reader, text.size()) == text);
        w.flush(*to);
        w.expect(to->note().empty());
        w.expect(::fcntl(pipe.writer.get(), F_GETFL) == flags);
    }));
}

TEST_CASE("target trouble: a target whose reader does not read is closed without a wait") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        base::unique_fd full(::dup(pipe.writer.get()));
        auto to = target::make(w.loop, std::move(pipe.writer), named("fifo"));
        const std::weak_ptr<target> alive = to;
        const auto text = long_text(1'000'000);
        w.add(*to, lines(0, text));
        w.expect(is_full(full));
        w.run([&] {
            to->close();
            to->close();
            to->add(lines(0, "too late\n"), when_full::block);
            to.reset();
        });
        w.expect(!alive.expired());
        w.expect(read_from(pipe.reader, text.size()) == text);
        full.reset();
        w.expect(read_from(pipe.reader).empty());  // the end: the file is closed
    }));
}

TEST_CASE("target trouble: a closed file is closed although nothing was written") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const auto to = target::make(w.loop, std::move(pipe.writer), named("fifo"));
        to->close();
        w.expect(read_from(pipe.reader).empty());
        const auto borrowed = make_pipe();
        const auto console = target::make(w.loop, borrowed.writer.get(), named("stdout"));
        console->close();
        w.expect(::fcntl(borrowed.writer.get(), F_GETFD) >= 0);
    }));
}

TEST_CASE("target trouble: what comes to a closed file is counted") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const auto to = target::make(w.loop, std::move(pipe.writer), named("fifo"));
        w.add(*to, lines(0, "in time\n"));
        w.run([&] { to->close(); });
        w.add(*to, lines(0, "late\n"));
        w.expect(read_from(pipe.reader) == "in time\n");
        w.expect(to->note() == "fifo: 5 bytes left out, because the file was closed before");
    }));
}

TEST_CASE("target trouble: no line is cut by a rotation, and a few older files are kept") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        std::error_code error;
        auto base = std::make_shared<base::unique_fd>(output::open_base(-1, scratch.path(), error));
        auto settings = named("log");
        settings.rotate = output::rotated_path{output::rotation(65'536, 3), "log", base};
        const auto to = target::make(w.loop, new_file(scratch.file("log")), settings);
        std::string all;
        w.run([&] {
            for (int i = 0; i < 20'000; ++i) {
                const auto line = std::to_string(i) + std::string(i % 100, 'x') + "\n";
                all += line;
                to->add(lines(0, line), when_full::block);
            }
        });
        w.flush(*to);
        std::string kept;
        for (const char* name : {"log.3", "log.2", "log.1", "log"}) {
            const auto text = read_file(scratch.file(name));
            w.expect(!text.empty() && text.back() == '\n' && text.size() <= 65'536);
            kept += text;
        }
        w.expect(all.ends_with("\n" + kept));
        w.expect(std::distance(fs::directory_iterator(scratch.path()), {}) == 4);
    }));
}

TEST_CASE("target trouble: a file that was not rotated is written on, and the note says so") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        fs::create_directories(scratch.file("log.1/full"));
        auto settings = named("log");
        settings.rotate =
            output::rotated_path{output::rotation(5, 1), scratch.file("log"), nullptr};
        const auto to = target::make(w.loop, new_file(scratch.file("log")), settings);
        w.add(*to, lines(0, "one\ntwo\n"));
        w.flush(*to);
        w.expect(read_file(scratch.file("log")) == "one\ntwo\n");
        w.expect(to->note() == "log: not rotated, so it is too large: Is a directory");
    }));
}

TEST_CASE("target trouble: two targets of one pipe write whole lines in turns") {
    CHECK(holds([](world& w) {
        const auto pipe = make_pipe();
        auto settings = named("stdout");
        settings.console = new output::console_writer(w.loop);
        const auto out = target::make(w.loop, pipe.writer.get(), settings);
        const auto err = target::make(w.loop, pipe.writer.get(), settings);
        constexpr std::size_t width = 9'999;
        w.run([&] {
            for (int i = 0; i < 100; ++i) {
                out->add(lines(0, std::string(width, 'o') + "\n"), when_full::block);
                err->add(lines(0, std::string(width, 'e') + "\n"), when_full::block);
            }
        });
        const auto text = read_from(pipe.reader, 200 * (width + 1));
        for (std::size_t at = 0; at < text.size(); at += width + 1) {
            const auto line = text.substr(at, width + 1);
            w.expect(line == std::string(width, line[0]) + "\n");
        }
        w.flush(*out);
        w.flush(*err);
    }));
}

TEST_CASE("target trouble: lines wait until a thread can be started") {
    if (under_asan || under_tsan) {
        skip(sanitizer_needs_memory);
        return;
    }
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        const auto to = target::make(w.loop, new_file(scratch.file("log")), named("log"));
        world::called written;
        w.run([&] {
            auto run = lines(0, "text\n");
            const without_threads none;
            to->add(std::move(run), when_full::block);
            w.expect(to->note() == "log: 5 bytes are not yet written");
            to->when_written(written.task());
        });
        w.expect(written.comes());
        w.expect(read_file(scratch.file("log")) == "text\n");
    }));
}

TEST_CASE("target trouble: files share one thread while no write hangs") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        const auto threads = [] {
            return std::distance(fs::directory_iterator("/proc/self/task"), {});
        };
        const auto before = threads();
        auto& shared = *new output::call_threads(w.loop, std::chrono::hours(1));
        std::vector<std::shared_ptr<target>> all;
        for (int i = 0; i < 50; ++i) {
            auto settings = named(std::to_string(i));
            settings.threads = &shared;
            all.push_back(target::make(w.loop, new_file(scratch.file(settings.name)), settings));
        }
        const auto text = long_text(300'000);
        w.run([&] {
            for (const auto& each : all)
                each->add(lines(0, text), when_full::block);
        });
        for (const auto& each : all)
            w.flush(*each);
        w.expect(threads() <= before + 1);
        for (int i = 0; i < 50; ++i)
            w.expect(read_file(scratch.file(std::to_string(i))) == text);
    }));
}

TEST_CASE("target trouble: files whose writes hang hold up no other file") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        auto& shared = *new output::call_threads(w.loop);
        auto settings = named("fifo");
        settings.threads = &shared;
        std::vector<base::unique_fd> readers;
        std::vector<std::shared_ptr<target>> hanging;
        const auto text = long_text(1'000'000);
        for (int i = 0; i < 3; ++i) {
            auto pipe = make_pipe();
            const base::unique_fd full(::dup(pipe.writer.get()));
            hanging.push_back(target::make(w.loop, std::move(pipe.writer), settings));
            readers.push_back(std::move(pipe.reader));
            w.add(*hanging.back(), lines(0, text));
            w.expect(is_full(full));
        }
        const auto to = target::make(w.loop, new_file(scratch.file("log")), settings);
        w.add(*to, lines(0, "text\n"));
        w.flush(*to);
        w.expect(read_file(scratch.file("log")) == "text\n");
        for (int i = 0; i < 3; ++i) {
            hanging[static_cast<std::size_t>(i)]->close();
            w.expect(read_from(readers[static_cast<std::size_t>(i)]) == text);
        }
    }));
}

TEST_CASE("target trouble: while all threads hang, as many again come") {
    CHECK(holds([](world& w) {
        auto& shared = *new output::call_threads(w.loop);
        constexpr int hanging = 40;
        std::promise<void> go;
        const auto goes = go.get_future().share();
        std::atomic<int> begun = 0;
        world::called other;
        for (int i = 0; i < hanging; ++i)
            shared.submit([&, goes](std::string&) {
                ++begun;
                begun.notify_all();
                goes.wait();
                return false;
            });
        w.run([&] { shared.run([] {}, other.task()); });
        w.expect(other.comes());
        for (int seen = 0; (seen = begun) != hanging;)  // the last may begin after the other
            begun.wait(seen);
        go.set_value();
    }));
}

TEST_CASE(
    "target trouble: a console that takes nothing keeps one thread and few of the ended groups") {
    CHECK(holds([](world& w) {
        const auto count = [](const char* directory) {
            return std::distance(fs::directory_iterator(directory), {});
        };
        const auto pipe = make_pipe();
        auto settings = named("stdout");
        settings.console = new output::console_writer(w.loop);
        const auto first = target::make(w.loop, pipe.writer.get(), settings);
        const auto text = long_text(1'000'000);
        w.add(*first, lines(0, text));
        w.expect(is_full(pipe.writer));
        const auto threads = count("/proc/self/task");
        const auto descriptors = count("/proc/self/fd");
        std::vector<std::weak_ptr<target>> all;
        for (int i = 0; i < 600; ++i) {
            const auto to =
                target::make(w.loop, base::unique_fd(::dup(pipe.writer.get())), settings);
            w.add(*to, lines(0, "text\n"));
            w.run([&] { to->close(); });
            all.push_back(to);
        }
        // The files of those that were left out are closed on another thread.
        w.expect(comes_true([&] { return count("/proc/self/fd") <= descriptors + 256; }));
        w.expect(comes_true([&] { return count("/proc/self/task") <= threads; }));
        const auto count_kept = [&] {
            return std::ranges::count_if(all, [](const auto& to) { return !to.expired(); });
        };
        w.expect(comes_true([&] { return count_kept() <= 256; }));
        // What was kept is written as soon as the console takes it. Some of those that still live
        // have been left out, so it is counted by what comes.
        std::size_t got = 0;
        w.expect(comes_true([&] {
            const bool is_over = count_kept() == 0 && first->pending().empty();
            pollfd polled{pipe.reader.get(), POLLIN, 0};
            char room[4096];
            const bool is_empty = ::poll(&polled, 1, 0) == 0;
            if (!is_empty)
                got += static_cast<std::size_t>(::read(pipe.reader.get(), room, sizeof room));
            return is_empty && is_over;
        }));
        const auto kept = (got - text.size()) / std::string_view("text\n").size();
        w.expect(kept > 100 && kept <= 256);
    }));
}

TEST_CASE("target trouble: a pipe is no terminal and shows no colours") {
    const auto pipe = make_pipe();
    const auto style = output::console_style(pipe.writer.get(), false);
    CHECK(style.ends_lines);
    CHECK_FALSE(style.is_terminal);
    CHECK_FALSE(style.colours_tags);
}

TEST_CASE("target trouble: a terminal shows colours unless they are not wanted") {
    const base::unique_fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(terminal);
    CHECK(output::console_style(terminal.get(), false).colours_tags);
    CHECK(output::console_style(terminal.get(), true).is_terminal);
    CHECK_FALSE(output::console_style(terminal.get(), true).colours_tags);
}

}  // namespace target_trouble_test
