// SPDX-License-Identifier: BSL-1.0
// Which descriptors a child that was started by exec has, and where.
#include "one_start.hpp"
#include "scratch.hpp"

#include <sys/resource.h>

namespace start_descriptors_test {

using namespace cohort;
using namespace cohort::test;
using start::stage;

namespace {

/// Lists its descriptors; the highest of 3 and above that was free is its own.
launch lister() { return launch({"/bin/ls", "/proc/self/fd"}); }

/// A forked copy that does nothing.
class sleeping_copy {
public:
    sleeping_copy() = default;
    sleeping_copy(const sleeping_copy&) = delete;
    sleeping_copy& operator=(const sleeping_copy&) = delete;
    ~sleeping_copy() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const noexcept { return pid_; }

private:
    const pid_t pid_ = fork_child([]() -> int {
        for (;;)
            ::pause();
    });
};

/// Prints the files that stand at these numbers.
launch printer(const std::vector<int>& numbers) {
    std::vector<std::string> words{"/bin/cat"};
    for (const int number : numbers)
        words.push_back("/proc/self/fd/" + std::to_string(number));
    return launch(words);
}

}  // namespace

TEST_CASE("start descriptors: stdio is inherited, nothing else") {
    const no_leftovers guard;
    const base::unique_fd leaky(::open("/dev/null", O_RDONLY));
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch ls = lister();
        ls.run(tier);
        CHECK(ls.output == "0\n1\n2\n3\n");
    }
}

TEST_CASE("start descriptors: none of 2000 open descriptors leaks, and they stay open here") {
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        CHECK(in_fork([&] {
                  rlimit limit;
                  ::getrlimit(RLIMIT_NOFILE, &limit);
                  limit.rlim_cur = limit.rlim_max;
                  ::setrlimit(RLIMIT_NOFILE, &limit);
                  if (limit.rlim_max < 2200)
                      return 0;
                  int last = -1;
                  for (int i = 0; i < 2000; ++i)
                      last = ::open("/dev/null", O_RDONLY);
                  const auto before = base::open_descriptors();
                  launch ls = lister();
                  ls.order.descriptors = {{7, last - 1000}};
                  ls.run(tier);
                  if (ls.output != "0\n1\n2\n3\n7\n")
                      return 1;
                  return base::open_descriptors() == before ? 0 : 2;
              }) == 0);
    }
}

TEST_CASE("start descriptors: behind many numbers, memory files are opened anew if that gives the "
          "same files") {
    const no_leftovers guard;
    const auto file = file_at(1000, "ab");
    const base::unique_fd root(
        ::fcntl(base::unique_fd(::open("/", O_PATH)).get(), F_DUPFD_CLOEXEC, 1000));
    const auto out = file_with("");
    // The child that shares the description goes on where its parent has read to.
    REQUIRE(::lseek(file.get(), 1, SEEK_SET) == 1);
    const auto read_by_child = [&](pid_t parent) {
        REQUIRE(::ftruncate(out.get(), 0) == 0);
        REQUIRE(::lseek(out.get(), 0, SEEK_SET) == 0);
        REQUIRE(::lseek(file.get(), 1, SEEK_SET) == 1);
        launch shell = launch::shell("cat <&9; pwd; ls /proc/self/fd");
        shell.env = {"PATH=/bin"};
        shell.order.directory_fd = root.get();
        shell.order.parent = parent;
        shell.order.descriptors = {{9, file.get(), nullptr, 0, true},
                                   {1, out.get(), nullptr, 0, true}};
        shell.run({true, true});
        return text_of(out.get());
    };
    CHECK(read_by_child(::getpid()) == "ab/\n0\n1\n2\n3\n9\n");
    // No such process; and another process, which has another file there.
    CHECK(read_by_child(0) == "b/\n0\n1\n2\n3\n9\n");
    const sleeping_copy other;
    const auto another = file_with("cd");
    REQUIRE(::dup3(another.get(), file.get(), O_CLOEXEC) == file.get());
    CHECK(read_by_child(other.pid()) == "d/\n0\n1\n2\n3\n9\n");
}

TEST_CASE(
    "start descriptors: behind many numbers, what can be seen but not opened anew is copied") {
    const no_leftovers guard;
    // Nobody may open a directory for writing.
    REQUIRE(::dup3(base::unique_fd(::open("/", O_RDONLY | O_CLOEXEC)).get(), 1000, O_CLOEXEC) ==
            1000);
    const base::unique_fd directory(1000);
    const auto out = file_with("");
    launch shell = launch::shell("[ -d /proc/self/fd/9/. ] && echo copied");
    shell.order.descriptors = {{9, directory.get(), nullptr, 0, true},
                               {1, out.get(), nullptr, 0, true}};
    shell.run({true, true});
    CHECK(shell.status.success());
    CHECK(text_of(out.get()) == "copied\n");
}

TEST_CASE("start descriptors: swapped descriptors arrive where they are asked") {
    const no_leftovers guard;
    const auto a = file_at(20, "a");
    const auto b = file_at(21, "b");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch cat = printer({20, 21});
        cat.order.descriptors = {{20, 21}, {21, 20}};
        cat.run(tier);
        CHECK(cat.output == "ba");
    }
}

TEST_CASE("start descriptors: a rotation, a copy to two places and one that stays all arrive") {
    const no_leftovers guard;
    const auto a = file_at(20, "a");
    const auto b = file_at(21, "b");
    const auto c = file_at(22, "c");
    const auto d = file_at(23, "d");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch cat = printer({20, 21, 22, 23, 24, 4});
        cat.order.descriptors = {{20, 22}, {21, 20}, {22, 21}, {23, 23}, {24, 20}, {4, 23}};
        cat.run(tier);
        CHECK(cat.output == "cabdad");
    }
}

TEST_CASE("start descriptors: only the targets are open in the child, not their sources") {
    const no_leftovers guard;
    const auto a = file_at(20, "a");
    const auto b = file_at(21, "b");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch ls = lister();
        ls.order.descriptors = {{21, 20}, {30, 21}};
        ls.run(tier);
        CHECK(ls.output == "0\n1\n2\n21\n3\n30\n");
    }
}

TEST_CASE("start descriptors: stdio can be swapped, and be the source of others") {
    const no_leftovers guard;
    const auto in = file_with("in");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        const auto out = file_with("");
        CHECK(in_fork([&] {
                  // Exchanged: a program expects input at 0, output at 1.
                  ::dup2(out.get(), 0);
                  ::dup2(in.get(), 1);
                  launch cat = launch({"/bin/cat", "/dev/stdin", "/proc/self/fd/9"});
                  cat.order.descriptors = {{0, 1}, {1, 0}, {9, 1}};
                  cat.run(tier);
                  return cat.status.success() ? 0 : 1;
              }) == 0);
        CHECK(text_of(out.get()) == "inin");
    }
}

TEST_CASE("start descriptors: paths are opened in the working directory") {
    const no_leftovers guard;
    const cohort::test::scratch_directory directory;
    const std::string out = directory.file("out");
    const std::string err = directory.file("err");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        ::unlink(out.c_str());
        ::unlink(err.c_str());
        launch shell = launch::shell("cat; echo to out; echo to err >&2");
        shell.env = {"PATH=/bin"};
        shell.order.working_directory = directory.path().c_str();
        shell.order.descriptors = {{0, -1, "/dev/null", O_RDONLY},
                                   {1, -1, "out", O_WRONLY | O_CREAT | O_APPEND},
                                   {2, -1, "err", O_WRONLY | O_CREAT}};
        shell.run(tier);
        CHECK(shell.status.success());
        CHECK(text_of(base::unique_fd(::open(out.c_str(), O_RDONLY)).get()) == "to out\n");
        CHECK(text_of(base::unique_fd(::open(err.c_str(), O_RDONLY)).get()) == "to err\n");
    }
}

TEST_CASE("start descriptors: a path may stand where another move has its source") {
    const no_leftovers guard;
    const auto a = file_at(20, "a");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch cat = printer({3, 20, 21});
        cat.order.descriptors = {
            {20, -1, "/dev/null", O_RDONLY}, {21, 20}, {3, -1, "/dev/null", O_RDONLY}};
        cat.run(tier);
        CHECK(cat.output == "a");
        CHECK(cat.status.success());
    }
}

TEST_CASE("start descriptors: a host at its limit of descriptors can still start") {
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        CHECK(in_fork([&] {
                  const auto a = file_at(60, "a");
                  const auto b = file_at(61, "b");
                  const auto c = file_at(63, "c");
                  const rlimit few{64, 64};
                  ::setrlimit(RLIMIT_NOFILE, &few);
                  launch cat = printer({0, 61, 60, 63});
                  cat.order.descriptors = {
                      {0, 63}, {60, 61}, {61, 60}, {63, -1, "/dev/null", O_RDONLY}};
                  std::vector<base::unique_fd> hoard;
                  const base::unique_fd out = file_with("");
                  cat.order.descriptors.push_back({1, out.get()});
                  // Leaves room for the test's file, hang_killer's pipe and the pidfd, all four at
                  // the limit.
                  while (*base::open_descriptors() < 60)
                      hoard.emplace_back(::open("/dev/null", O_RDONLY));
                  cat.run(tier);
                  if (!cat.executed)
                      return 100 + cat.result.error;
                  return text_of(out.get()) == "cab" ? 0 : 1;
              }) == 0);
    }
}

TEST_CASE("start descriptors: without room for the pidfd no child comes to be") {
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        CHECK(in_fork([&] {
                  launch program({"/bin/true"});
                  wanted_order order;
                  char path[] = "/bin/true";
                  order.candidates = {path};
                  order.argv = {path, nullptr};
                  order.envp = {nullptr};
                  const rlimit none{0, 0};
                  ::setrlimit(RLIMIT_NOFILE, &none);
                  const auto result = start_by_exec(order, program.slot, tier);
                  if (result.failed != stage::clone || result.error != EMFILE || result.pidfd)
                      return 1;
                  return program.slot == -1 && ::waitpid(-1, nullptr, __WALL) == -1 ? 0 : 2;
              }) == 0);
    }
}

TEST_CASE(
    "start descriptors: a host without stdio gets a pidfd above it and a child without stdio") {
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        CHECK(in_fork([&] {
                  for (const int fd : {0, 1, 2})
                      ::close(fd);
                  launch ls = lister();
                  ls.run(tier);
                  // ls has its own where stdin would be; 1 is the test's file.
                  if (ls.output != "0\n1\n")
                      return 1;
                  if (ls.pidfd_number < 3 || ls.slot != ls.pidfd_number)
                      return 2;
                  launch cat = launch({"/bin/cat", "/dev/stdin", "/dev/fd/2"});
                  const auto text = file_with("text");
                  cat.order.descriptors = {{2, text.get()}, {0, -1, "/dev/null", O_RDONLY}};
                  cat.run(tier);
                  if (cat.output != "text")
                      return 3;
                  return ::fcntl(0, F_GETFD) == -1 && ::fcntl(2, F_GETFD) == -1 ? 0 : 4;
              }) == 0);
    }
}

}  // namespace start_descriptors_test
