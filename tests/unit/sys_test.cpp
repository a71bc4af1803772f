// SPDX-License-Identifier: BSL-1.0
#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "base/sys/memfd.hpp"
#include "reporter.hpp"
#include "sys_support.hpp"

#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

namespace sys_test {

using namespace cohort;
using namespace cohort::test;
using base::unique_fd;

namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
bool closes_on_exec(int fd) { return ::fcntl(fd, F_GETFD) == FD_CLOEXEC; }

unique_fd open_null() { return unique_fd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

std::vector<std::byte> bytes_of(std::size_t count) { return {count, std::byte{'x'}}; }

}  // namespace

TEST_CASE("sys: the last unique_fd closes, and errno stays") {
    const no_leftovers guard;
    unique_fd first = open_null();
    const int number = first.get();
    unique_fd second = std::move(first);
    CHECK(first.get() == -1);
    CHECK(second.get() == number);
    CHECK(is_open(number));
    errno = ENOTTY;
    second.reset();
    CHECK(errno == ENOTTY);
    CHECK_FALSE(is_open(number));
    CHECK_FALSE(second);
}

TEST_CASE(
    "sys: unique_fd::release gives the descriptor away open, and assignment closes the old one") {
    const no_leftovers guard;
    unique_fd owner = open_null();
    const int old = owner.get();
    unique_fd other = open_null();
    const int kept = other.get();
    owner = std::move(other);
    CHECK_FALSE(is_open(old));
    CHECK(owner.release() == kept);
    CHECK(is_open(kept));
    owner.reset(kept);
}

TEST_CASE("sys: a memfd is close-on-exec and holds what is written at its offset") {
    const no_leftovers guard;
    std::error_code error;
    const unique_fd file = base::make_memfd("cohort-test", error);
    REQUIRE_FALSE(error);
    CHECK(closes_on_exec(file.get()));
    const auto bytes = bytes_of(3 << 20);
    CHECK_FALSE(base::write_at(file.get(), bytes, 5));
    struct stat now;
    REQUIRE(::fstat(file.get(), &now) == 0);
    CHECK(now.st_size == (3 << 20) + 5);
    CHECK(::lseek(file.get(), 0, SEEK_CUR) == 0);
    CHECK(base::inode(file.get(), error) == now.st_ino);
    CHECK_FALSE(error);
}

TEST_CASE("sys: a memfd belongs to its user alone") {
    const no_leftovers guard;
    const auto before = ::umask(0777);
    std::error_code error;
    const unique_fd file = base::make_memfd("cohort-test", error);
    ::umask(before);
    REQUIRE_FALSE(error);
    struct stat found {};
    REQUIRE(::fstat(file.get(), &found) == 0);
    CHECK((found.st_mode & 07777) == 0600);
}

TEST_CASE("sys: a memfd is not executable where the kernel can refuse that") {
    const no_leftovers guard;
    const unique_fd probe(::memfd_create("probe", MFD_CLOEXEC | 8U));
    if (!probe) {
        skip("no MFD_NOEXEC_SEAL here");
        return;
    }
    std::error_code error;
    const unique_fd file = base::make_memfd("cohort-test", error);
    CHECK(::fchmod(file.get(), 0700) == -1);
    CHECK(errno == EPERM);
}

TEST_CASE("sys: without MFD_NOEXEC_SEAL, where the kernel does not know it, memfds are sealable") {
    CHECK(in_fork([] {
              // Answer EINVAL when the flag is set, as a kernel before 6.3 does.
              sock_filter program[] = {
                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
                  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 8U, 0, 1),
                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
              };
              const sock_fprog filter{std::size(program), program};
              if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
                  return 1;
              std::error_code error;
              const auto first = base::make_memfd("a", error);
              if (!first || error)
                  return 2;
              const auto second = base::make_memfd("b", error);
              if (!second || error)
                  return 3;
              return base::add_seals(first.get(), F_SEAL_SHRINK) ||
                             base::add_seals(second.get(), F_SEAL_SHRINK)
                         ? 4
                         : 0;
          }) == 0);
}

TEST_CASE("sys: a memfd can be sealed") {
    const no_leftovers guard;
    std::error_code error;
    const unique_fd file = base::make_memfd("cohort-test", error);
    CHECK_FALSE(base::add_seals(file.get(), F_SEAL_WRITE));
    CHECK(base::write_at(file.get(), bytes_of(1), 0).value() == EPERM);
}

TEST_CASE("sys: a memfd name that is too long is EINVAL and leaves nothing open") {
    const no_leftovers guard;
    std::error_code error;
    CHECK_FALSE(base::make_memfd(std::string(300, 'n').c_str(), error));
    CHECK(error.value() == EINVAL);
}

TEST_CASE("sys: a memfd gets a number of 3 or higher even without standard streams") {
    CHECK(in_fork([] {
              for (const int fd : {0, 1, 2})
                  ::close(fd);
              std::error_code error;
              const auto file = base::make_memfd("cohort-test", error);
              return !error && file.get() >= 3 && closes_on_exec(file.get()) && !is_open(0) ? 0 : 1;
          }) == 0);
}

TEST_CASE("sys: a memfd at the limit of descriptors is EMFILE") {
    CHECK(in_fork([] {
              const rlimit none{3, 3};
              ::setrlimit(RLIMIT_NOFILE, &none);
              std::error_code error;
              const auto file = base::make_memfd("cohort-test", error);
              return !file && error.value() == EMFILE ? 0 : 1;
          }) == 0);
}

TEST_CASE("sys: memory is reserved while signals keep coming") {
    const no_leftovers guard;
    std::error_code error;
    const unique_fd memory = base::make_memfd("sys_test", error);
    REQUIRE_FALSE(error);
    constexpr std::size_t size = std::size_t{128} << 20;  // takes longer than the signals' interval
    struct sigaction handler {};
    struct sigaction before {};
    handler.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &handler, &before);
    const itimerval every{{0, 1000}, {0, 1000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
    error = base::reserve(memory.get(), size);
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
    CHECK_FALSE(error);
    struct stat status {};
    CHECK(::fstat(memory.get(), &status) == 0);
    CHECK(static_cast<std::size_t>(status.st_size) == size);
    CHECK(static_cast<std::size_t>(status.st_blocks) * 512 >= size);
}

TEST_CASE("sys: write_at goes on after a short write and reports what stops it") {
    CHECK(in_fork([] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit small{10, 10};
              ::setrlimit(RLIMIT_FSIZE, &small);
              std::error_code error;
              const auto file = base::make_memfd("cohort-test", error);
              error = base::write_at(file.get(), bytes_of(20), 0);
              struct stat now;
              ::fstat(file.get(), &now);
              return error.value() == EFBIG && now.st_size == 10 ? 0 : 1;
          }) == 0);
}

TEST_CASE("sys: the functions for memfds report a closed descriptor") {
    std::error_code error;
    CHECK(base::inode(-1, error) == 0);
    CHECK(error.value() == EBADF);
    CHECK(base::write_at(-1, bytes_of(1), 0).value() == EBADF);
    CHECK(base::add_seals(-1, F_SEAL_WRITE).value() == EBADF);
}

TEST_CASE("sys: the count of descriptors follows what is opened, by both ways") {
    const no_leftovers guard;
    const auto before = base::open_descriptors();
    REQUIRE(before);
    CHECK(base::count_listed_descriptors() == before);
    {
        std::vector<unique_fd> more;
        for (int i = 0; i < 500; ++i)  // more than one page of the listing
            more.push_back(open_null());
        CHECK(base::open_descriptors() == *before + 500);
        CHECK(base::count_listed_descriptors() == *before + 500);
    }
    CHECK(base::open_descriptors() == before);
}

TEST_CASE("sys: the count by listing says so where no descriptor is free for the listing") {
    CHECK(in_fork([] {
              const rlimit limit{1024, 1024};  // above all that was inherited
              ::setrlimit(RLIMIT_NOFILE, &limit);
              std::error_code error;
              std::vector<unique_fd> others;
              while (auto copy = base::duplicate(STDERR_FILENO, error))
                  others.push_back(std::move(copy));
              return base::count_listed_descriptors() == 1024U ? 0 : 1;
          }) == 0);
}

TEST_CASE("sys: the count of descriptors is unknown without /proc") {
    if (::geteuid() != 0) {
        skip("chroot needs root");
        return;
    }
    CHECK(in_fork([] {
              if (::chroot("/dev") != 0)
                  return 1;
              return base::open_descriptors() || base::count_listed_descriptors() ? 2 : 0;
          }) == 0);
}

TEST_CASE("sys: the limit on descriptors is the soft one") {
    CHECK(in_fork([] {
              rlimit limit;
              ::getrlimit(RLIMIT_NOFILE, &limit);
              limit.rlim_cur = 77;
              ::setrlimit(RLIMIT_NOFILE, &limit);
              return base::descriptor_limit() == 77 ? 0 : 1;
          }) == 0);
}

TEST_CASE("sys: a free number of a standard stream is no room for a descriptor") {
    CHECK(in_fork([] {
              const rlimit limit{1024, 1024};  // above all that was inherited
              ::setrlimit(RLIMIT_NOFILE, &limit);
              std::error_code error;
              std::vector<unique_fd> others;
              while (auto copy = base::duplicate(STDERR_FILENO, error))
                  others.push_back(std::move(copy));
              others.pop_back();  // a count of open descriptors may need one
              ::close(STDIN_FILENO);
              if (!base::has_room_for(1) || base::has_room_for(2))
                  return 1;
              others.pop_back();
              return base::has_room_for(2) && !base::has_room_for(3) ? 0 : 2;
          }) == 0);
}

TEST_CASE("sys: a duplicate is close-on-exec and above the standard streams") {
    const no_leftovers guard;
    std::error_code error;
    const unique_fd copy = base::duplicate(0, error);
    CHECK_FALSE(error);
    CHECK(copy.get() >= 3);
    CHECK(closes_on_exec(copy.get()));
    CHECK_FALSE(base::duplicate(-1, error));
    CHECK(error.value() == EBADF);
}

TEST_CASE("sys: fork_mark knows a forked copy for another process") {
    const base::fork_mark mark;
    CHECK(mark.same_process());
    CHECK(in_fork([&] { return mark.same_process() ? 1 : 0; }) == 0);
    CHECK(mark.same_process());
}

TEST_CASE("sys: fork_mark compares pids without the page or MADV_WIPEONFORK") {
    for (const long denied : {SYS_mmap, SYS_madvise}) {
        CAPTURE(denied);
        CHECK(in_fork([&] {
                  if (!deny(denied, EINVAL))
                      return 1;
                  const base::fork_mark mark;
                  if (!mark.same_process())
                      return 2;
                  // Not by the C library's fork, which may need the denied call.
                  const long pid = ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
                  if (pid == 0)
                      ::_exit(mark.same_process() ? 3 : 0);
                  int status = -1;
                  ::waitpid(static_cast<pid_t>(pid), &status, 0);
                  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
              }) == 0);
    }
}

}  // namespace sys_test
