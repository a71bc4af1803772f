// SPDX-License-Identifier: BSL-1.0
// What targets write, and whom they tell.
#include "output/routes/pattern.hpp"
#include "target_support.hpp"

namespace target_test {

TEST_CASE("target: lines are written whole and in order") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const auto to = target::make(w.loop, std::move(pipe.writer), named("pipe"));
        std::string all;
        w.run([&] {
            for (int i = 0; i < 3000; ++i) {
                const auto text = "worker " + std::to_string(i % 3) + " line " + std::to_string(i) +
                                  "\nanother\n" + std::string(100, 'x') + "\n";
                all += text;
                to->add(lines(i % 3, text), when_full::block);
            }
            to->close();
        });
        w.expect(read_from(pipe.reader) == all);
    }));
}

TEST_CASE("target: each line has its worker's tag, and the last one gets a newline") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        const auto to = target::make(w.loop, new_file(scratch.file("log")), named("log"));
        w.run([&] {
            to->set_tag(0, cohort::stream::out, "[0]: ");
            to->set_tag(7, cohort::stream::out, "[7]: ");
            to->add(lines(7, "a\nb\n"), when_full::block);
            to->add(lines(0, "c"), when_full::block);
            to->add(lines(1, "no tag\n"), when_full::block);
        });
        w.flush(*to);
        w.expect(read_file(scratch.file("log")) == "[7]: a\n[7]: b\n[0]: c\nno tag\n");
        w.run([&] { to->set_tag(8, cohort::stream::out, "[8]: "); });
        w.add(*to, lines(8, "later\n"));
        w.flush(*to);
        w.expect(read_file(scratch.file("log")).ends_with("no tag\n[8]: later\n"));
    }));
}

TEST_CASE("target: a tag names the attempt that has written the line, however late it is written") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const auto to = target::make(w.loop, std::move(pipe.writer), named("pipe"));
        const auto tag = output::expand("<{attempt}> ", {0, 1, std::nullopt, {}, {}});
        std::string all;
        w.run([&] {
            for (int attempt = 0; attempt < 3; ++attempt) {
                to->set_tag(0, cohort::stream::out, tag);
                for (int i = 0; i < 500; ++i) {
                    auto run = std::make_shared<detail::line_run>(*lines(0, "a line of text\n"));
                    run->attempt = attempt;
                    to->add(run, when_full::block);
                    all += "<" + std::to_string(attempt) + "> a line of text\n";
                }
            }
            to->close();
        });
        w.expect(read_from(pipe.reader) == all);
    }));
}

TEST_CASE("target: one that is closed takes lines again, behind those that are not yet written") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const auto to = target::make(w.loop, std::move(pipe.writer), named("pipe"));
        const auto text = long_text(more_than_a_pipe);
        w.add(*to, lines(0, text));
        w.run([&] { to->close(); });
        w.expect(to->reopen());
        w.add(*to, lines(0, "later\n"));
        w.run([&] { to->close(); });
        w.expect(read_from(pipe.reader) == text + "later\n");
        w.expect(to->trouble().empty());
        w.expect(!to->reopen());
    }));
}

TEST_CASE("target: the bytes of one stream stay as they are") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        auto settings = named("log");
        settings.style.ends_lines = false;
        const auto to = target::make(w.loop, new_file(scratch.file("log")), settings);
        std::string bytes;
        for (int i = 0; i < 1024; ++i)
            bytes += static_cast<char>(i);
        w.add(*to, lines(0, bytes));
        w.add(*to, lines(0, "no newline"));
        w.flush(*to);
        w.expect(read_file(scratch.file("log")) == bytes + "no newline");
    }));
}

TEST_CASE("target: a timestamp says by the wall clock when a line was read") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        auto settings = named("log");
        settings.style.timestamps = true;
        const auto to = target::make(w.loop, new_file(scratch.file("log")), settings);
        w.run([&] { to->set_tag(0, cohort::stream::out, "[0]: "); });
        const auto hour = std::chrono::system_clock::now() - std::chrono::hours(1);
        w.add(*to, lines(0, "x\n", clock_type::now(), hour));
        w.flush(*to);
        const auto text = read_file(scratch.file("log"));
        w.expect(is_like(text, "####-##-##T##:##:##.###Z [0]: x\n"));
        std::tm when{};
        w.expect(::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &when) != nullptr);
        const auto told = std::chrono::system_clock::from_time_t(::timegm(&when));
        w.expect(told - hour < bound && hour - told < bound);
    }));
}

TEST_CASE("target: there is no room while nobody reads, and when_room is called after it") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const int writer = pipe.writer.get();
        const auto to = target::make(w.loop, writer, named("stdout"));
        const auto flags = ::fcntl(writer, F_GETFL);
        const auto text = long_text(1'500'000);
        world::called room, written;
        w.run([&] {
            w.expect(to->has_room());
            to->add(lines(0, text), when_full::block);
            w.expect(!to->has_room());
            to->when_room(room.task());
            to->when_written(written.task());
        });
        w.expect(is_full(pipe.writer));
        w.expect(room.is_missing());
        w.expect(is_like(to->note(), "stdout: 1,###,### bytes are not yet written"));
        w.expect(to->trouble().empty());
        w.expect(read_from(pipe.reader, text.size() / 2) +
                     read_from(pipe.reader, text.size() / 2) ==
                 text);
        w.expect(room.comes());
        w.expect(written.comes());
        w.expect(to->has_room() && to->note().empty());
        w.expect(::fcntl(writer, F_GETFL) == flags);
    }));
}

TEST_CASE("target: what is dropped is reported in its place") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        auto settings = named("stdout");
        settings.buffer = 100;
        const auto to = target::make(w.loop, pipe.writer.get(), settings);
        const auto first = long_text(more_than_a_pipe);
        w.run([&] { to->set_tag(3, cohort::stream::out, "[3]: "); });
        w.add(*to, lines(0, first));
        w.expect(is_full(pipe.writer));
        w.run([&] {
            for (int i = 0; i < 20; ++i)
                to->add(lines(3, "line " + std::to_string(i) + "\n"), when_full::drop_oldest);
        });
        const std::string rest = "[3]: ... 17 lines, 126 bytes left out\n"
                                 "[3]: line 17\n[3]: line 18\n[3]: line 19\n";
        w.expect(read_from(pipe.reader, first.size() + rest.size()) == first + rest);
        w.flush(*to);
        w.expect(to->note().empty());
    }));
}

TEST_CASE("target: a loss that no line follows is reported at the end of the stream") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        auto settings = named("stdout");
        settings.buffer = 40;
        const auto to = target::make(w.loop, pipe.writer.get(), settings);
        const auto first = long_text(more_than_a_pipe);
        w.add(*to, lines(0, first));
        w.expect(is_full(pipe.writer));
        w.run([&] {
            to->add(lines(1, "gone\n"), when_full::drop_oldest);
            to->add(lines(2, std::string(60, 'y') + "\n"), when_full::block);
            to->add(lines(1, "gone\n"), when_full::drop_oldest);
            to->end_stream(1, 0, stream::out, clock_type::now());
            to->close();
        });
        const auto rest = std::string(60, 'y') + "\n... 2 lines, 10 bytes left out\n";
        w.expect(read_from(pipe.reader, first.size() + rest.size()) == first + rest);
    }));
}

TEST_CASE("target: when_written comes after all that was added before") {
    CHECK(holds([](world& w) {
        const scratch_directory scratch;
        const auto to = target::make(w.loop, new_file(scratch.file("log")), named("log"));
        std::promise<bool> is_all;
        w.run([&] {
            auto called = std::make_shared<bool>(false);
            to->when_written([called] { *called = true; });
            w.expect(!*called);
            const auto text = long_text(3'000'000);
            to->add(lines(0, text), when_full::block);
            to->when_written([&is_all, &scratch, text] {
                is_all.set_value(read_file(scratch.file("log")) == text);
            });
        });
        auto future = is_all.get_future();
        w.expect(future.wait_for(bound) == std::future_status::ready && future.get());
    }));
}

TEST_CASE("target: lines that were added later do not hold up when_written") {
    CHECK(holds([](world& w) {
        auto pipe = make_pipe();
        const auto to = target::make(w.loop, pipe.writer.get(), named("stdout"));
        const auto text = long_text(100'000);
        const auto now = clock_type::now();
        world::called first, last;
        w.run([&] {
            to->add(lines(0, text, now), when_full::block);
            to->when_written(first.task());
            for (int i = 1; i <= 10; ++i)
                to->add(lines(1, text, now + std::chrono::milliseconds(i)), when_full::block);
            to->when_written(last.task());
        });
        (void)read_from(pipe.reader, 3 * text.size());
        w.expect(first.comes());
        w.expect(last.is_missing());
        (void)read_from(pipe.reader, 8 * text.size());
        w.expect(last.comes());
    }));
}

}  // namespace target_test
