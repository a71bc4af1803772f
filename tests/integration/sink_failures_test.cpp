// SPDX-License-Identifier: BSL-1.0
// Places that take no text: refused at the start with the worker's index, or given up later with a
// note. Neither holds up a worker or a join.
#include "descriptor_limit.hpp"
#include "live_support.hpp"
#include "procfs.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <filesystem>

#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace sink_failures_test {

using namespace cohort::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

/// A file system in memory with room for 64 KiB.
class small_file_system {
public:
    explicit small_file_system(const std::string& path)
        : path_(path), is_mounted_(::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=65536") == 0) {
        if (!is_mounted_)
            skip("needs to mount a tmpfs: " + std::generic_category().message(errno));
    }
    small_file_system(const small_file_system&) = delete;
    small_file_system& operator=(const small_file_system&) = delete;
    ~small_file_system() {
        if (is_mounted_)
            ::umount2(path_.c_str(), MNT_DETACH);
    }
    bool is_mounted() const noexcept { return is_mounted_; }

private:
    const std::string path_;
    const bool is_mounted_;
};

/// A FIFO whose reader, this object, does not read by itself.
class stuck_fifo {
public:
    explicit stuck_fifo(std::string path) : path_(std::move(path)) {
        if (::mkfifo(path_.c_str(), 0600) != 0 ||
            (fd_ = ::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0)
            throw std::system_error(errno, std::generic_category(), path_);
        const std::string page(4096, '.');
        while (::write(fd_, page.data(), page.size()) > 0)
            filled_ += page.size();
    }
    stuck_fifo(const stuck_fifo&) = delete;
    stuck_fifo& operator=(const stuck_fifo&) = delete;
    ~stuck_fifo() { ::close(fd_); }

    const std::string& path() const noexcept { return path_; }
    /// Reads until what is behind the filling is `text`. Blocks, with the watchdog's bound.
    void reads_at_last(const std::string& text) {
        std::string got;
        while (got.size() < filled_ + text.size()) {
            pollfd polled{fd_, POLLIN, 0};
            REQUIRE(::poll(&polled, 1, static_cast<int>(generous_bound() / 2ms)) == 1);
            char part[65536];
            if (const auto size = ::read(fd_, part, sizeof part); size > 0)
                got.append(part, static_cast<std::size_t>(size));
        }
        CHECK(got.substr(filled_) == text);
    }

private:
    const std::string path_;
    int fd_ = -1;
    std::size_t filled_ = 0;
};

/// The start fails at worker 2, because of this file, as its own and beside another sink.
void check_refused(const std::string& path, std::errc code) {
    CAPTURE(path);
    for (const bool is_direct : {true, false})
        for (const std::string stage : {"stdout", "stderr"}) {
            const scratch_directory directory;
            const auto work = [&](int index) {
                const auto there =
                    cohort::file(index == 2 ? path : directory.file(std::to_string(index)));
                auto made = shell("echo text");
                if (stage == "stdout")
                    is_direct ? made.stdout_to(there) : made.stdout_to(there, cohort::capture());
                else
                    is_direct ? made.stderr_to(there) : made.stderr_to(there, cohort::capture());
                return made;
            };
            const auto quiet = cohort::options(4).output_to(cohort::discard());
            const auto error = thrown_by<cohort::spawn_error>(cohort::command_for(work), quiet);
            CAPTURE(error.what());
            CHECK(error.stage() == stage);
            CHECK(error.error_index() == 2);
            CHECK(error.code() == code);
            CHECK(std::string(error.what()).find("\"" + path + "\"") != std::string::npos);
        }
}

std::string note_of(const std::string& script, cohort::options how) {
    const auto report = ended(shell(script), std::move(how));
    CHECK(report.success());
    return report.outcomes.at(0).note();
}

}  // namespace

TEST_CASE("sink failures: a directory, a path through a file and a FIFO without reader are refused "
          "with the worker's index") {
    const leak_guard guard;
    const scratch_directory directory;
    check_refused(directory.path(), std::errc::is_a_directory);
    check_refused(directory.write("plain", "") + "/below/it", std::errc::not_a_directory);
    REQUIRE(::mkfifo(directory.file("fifo").c_str(), 0600) == 0);
    check_refused(directory.file("fifo"), std::errc::no_such_device_or_address);
    check_refused("/proc/cohort/out", std::errc::no_such_file_or_directory);
    CHECK(read_file(directory.file("plain")).empty());
}

TEST_CASE("sink failures: a file without permission is refused with the worker's index") {
    if (::geteuid() == 0)
        return skip("root may write everywhere");
    const leak_guard guard;
    const scratch_directory directory;
    check_refused(directory.write("locked", "", 0400), std::errc::permission_denied);
    fs::create_directory(directory.file("closed"));
    fs::permissions(directory.file("closed"), fs::perms(0500));
    check_refused(directory.file("closed/out"), std::errc::permission_denied);
}

TEST_CASE("sink failures: a path with a NUL is refused when it is set") {
    const leak_guard guard;
    const std::string path("a\0b", 3);
    CHECK_THROWS_AS((void)cohort::file(path), std::invalid_argument);
    CHECK_THROWS_AS((void)cohort::options(1).stdout_to(path), std::invalid_argument);
    CHECK_THROWS_AS((void)cohort::options(1).name(path), std::invalid_argument);
}

TEST_CASE("sink failures: a full disk ends the file and not the worker, and the note says so") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto to = [](const std::string& path) {
        return cohort::options(1).stdout_to(cohort::file(path), cohort::capture());
    };
    CHECK(note_of("seq 1 100000", to("/dev/full")) ==
          "/dev/full: No space left on device after 0 bytes");
    const small_file_system disk(directory.path());
    if (!disk.is_mounted())
        return;
    const auto path = directory.file("{index}");
    const auto report = ended(shell("seq 1 100000"), to(path).nprocs(2));
    CHECK(report.success());
    std::size_t sum = 0;
    std::string first_text;
    for (const auto& worker : report.outcomes) {
        const auto name = directory.file(std::to_string(worker.index));
        const auto text = read_file(name);
        sum += text.size();
        const auto count = text.size() < 1000
                               ? std::to_string(text.size())
                               : fmt::format("{},{:03}", text.size() / 1000, text.size() % 1000);
        CHECK(worker.note() ==
              fmt::format("{}: No space left on device after {} bytes", name, count));
        CHECK(worker.out.total == 588'895);
    }
    CHECK(sum == 65'536);
}

TEST_CASE("sink failures: notes of several files, and of other things, are joined") {
    const leak_guard guard;
    const scratch_directory directory;
    for (const auto* name : {"a", "b"})
        fs::create_symlink("/dev/full", directory.file(name));
    const auto how = cohort::options(1)
                         .stdout_to(cohort::file(directory.file("a")), cohort::capture())
                         .stderr_to(cohort::file(directory.file("b")), cohort::capture());
    const auto note = [&](const char* name) {
        return directory.file(name) + ": No space left on device after 0 bytes";
    };
    CHECK(note_of("echo x; echo y >&2", how) == note("a") + "; " + note("b"));
    const auto report = ended(shell("echo x; echo y >&2; kill -KILL $$"), how);
    CHECK(report.outcomes.at(0).note() ==
          "SIGKILL, not sent by this group; " + note("a") + "; " + note("b"));
    // A file that several workers share is in the note of each.
    const auto shared = cohort::file("/dev/full");
    for (const auto& worker : ended(shell("echo x"), cohort::options(3).stdout_to(shared)).outcomes)
        CHECK(worker.note() == "/dev/full: No space left on device after 0 bytes");
}

GROUP_TEST("sink failures: a directory that is removed meanwhile disturbs nobody") {
    const scratch_directory directory;
    ready up(executor);
    gate hold;
    const auto plain = cohort::file(directory.file("below/plain"));
    const auto rotated = cohort::file(directory.file("below/rotated")).rotate(1000, 2);
    auto how = cohort::options(1).stdout_to(plain, rotated, cohort::capture());
    how.fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number);
    const auto work = shell("seq 1 10; echo >&9; read line <&8; seq 11 100000");
    auto group = co_await cohort::spawn(work, how);
    co_await up.wait();
    fs::remove_all(directory.file("below"));
    hold.open();
    const auto report = co_await group.wait();
    CHECK(report.success());
    CHECK(report.outcomes.at(0).out.total == 588'895);
    const auto& note = report.outcomes.at(0).note();
    CAPTURE(note);
    CHECK(note.find(directory.file("below/rotated") + ": No such file or directory after ") == 0);
    CHECK(note.find("plain") == std::string::npos);
}

TEST_CASE("sink failures: too few descriptors for the pipes are an error before a worker starts") {
    if (under_asan)
        return skip(asan_needs_it);
    const leak_guard guard;
    const scratch_directory directory;
    const auto how = cohort::options(50)
                         .stdout_to(cohort::capture())
                         .stderr_to(cohort::file(directory.file("{index}")).tagged());
    // A record, a pidfd and two pipes for each, and 50 files.
    const auto open = open_descriptors().size();
    const descriptor_limit low(open + 200);
    const auto error =
        thrown_by<cohort::spawn_error>(shell("echo started >" + directory.file("started")), how);
    CAPTURE(error.what());
    CHECK(error.stage() == "limit");
    CHECK(error.error_index() == -1);
    CHECK(error.code() == std::errc::too_many_files_open);
    const std::string text = error.what();
    CHECK(text.find("50 workers need 350 descriptors") != std::string::npos);
    CHECK(text.find(fmt::format(" of {} are in use", open + 200)) != std::string::npos);
    CHECK(names_in(directory.path()).empty());
}

TEST_CASE("sink failures: where the user's pages for pipes are used up, small pipes serve") {
    const leak_guard guard;
    const auto report = ended(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "crowded"),
                              cohort::options(1).success_codes(0, 77).output_to(cohort::capture()));
    CAPTURE(report.outcomes.at(0).err.text());
    if (report.outcomes.at(0).status.exit_code() == 77)
        return skip("the kernel makes no small pipes for this user");
    CHECK(report.outcomes.at(0).status.exit_code() == 0);
}

TEST_CASE("sink failures: a file that does not take its text delays the outcome by the flush "
          "timeout, and gets the text later") {
    const leak_guard guard;
    const scratch_directory directory;
    stuck_fifo fifo(directory.file("fifo"));
    stuck_fifo other(directory.file("other"));
    const auto how = cohort::options(1)
                         .flush_timeout(20ms)
                         .stdout_to(cohort::file(fifo.path()), cohort::capture())
                         .stderr_to(cohort::file(other.path()), cohort::capture());
    const auto report = ended(shell("echo hello; printf x >&2"), how);
    const auto& worker = report.outcomes.at(0);
    CHECK(worker.success());
    CHECK(worker.note() == fifo.path() + ": 6 bytes are not yet written; " + other.path() +
                               ": 1 byte is not yet written");
    CHECK(worker.out.text() == "hello\n");
    fifo.reads_at_last("hello\n");
    other.reads_at_last("x");
}

GROUP_TEST("sink failures: until the flush timeout, the outcome waits for the text to be written") {
    const scratch_directory directory;
    stuck_fifo fifo(directory.file("fifo"));
    auto how = cohort::options(1).flush_timeout(1h).stdout_to(cohort::file(fifo.path()),
                                                              cohort::capture());
    auto group = co_await cohort::spawn(shell("echo hello"), how);
    CHECK_FALSE(co_await group.join(50ms));  // is not told early; may be late
    CHECK(group.alive() == 1);
    fifo.reads_at_last("hello\n");
    const auto report = co_await group.wait();
    CHECK(report.success());
    CHECK(report.outcomes.at(0).note() == "");
}

GROUP_TEST("sink failures: a worker that waits for a stuck file is stopped by the ladder") {
    const scratch_directory directory;
    stuck_fifo fifo(directory.file("fifo"));
    auto how = cohort::options(1).flush_timeout(20ms).stdout_to(
        cohort::file(fifo.path()).tagged(), cohort::capture().head(10).tail(10));
    ready up(executor);
    how.fd(up.child_end(), ready::number);
    // More than the queue and the pipe take, so that the last byte never comes.
    auto group = co_await cohort::spawn(shell("echo first; echo >&9; exec seq 1 10000000"), how);
    co_await up.wait();
    CHECK_FALSE(co_await group.join(100ms));  // the ladder is the same if nothing is stuck yet
    co_await group.stop();
    const auto outcome = group.outcomes().at(0);
    CHECK(outcome.cause == cohort::cause::stopped);
    CHECK(outcome.out.total < 4 << 20);
    CHECK(outcome.note().find(fifo.path() + ": ") != std::string::npos);
    CHECK(outcome.note().find(" bytes are not yet written") != std::string::npos);
}

}  // namespace sink_failures_test
