// SPDX-License-Identifier: BSL-1.0
// Shared arrays with names in /dev/shm: which names there are, whose they are, who removes them.
#include "base/files/descriptor.hpp"
#include "base/files/named_file.hpp"
#include "base/sys/descriptors.hpp"
#include "guard.hpp"
#include "reporter.hpp"
#include "scratch.hpp"
#include "sys_support.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace named_memory_test {

using namespace cohort;
using namespace cohort::test;

namespace {

const share_options with_name = share_options().strategy(sharing_strategy::file_system);

bool names_are_denied() {
    const auto why = base::why_no_names().why;
    if (!why.empty())
        skip(why);
    return !why.empty();
}

/// A name that no other program uses.
std::string own_name() { return "cohort-test-" + std::to_string(::getpid()); }
std::string path_of(const std::string& name) { return "/dev/shm/" + name; }

bool exists(const std::string& name) { return std::filesystem::exists(path_of(name)); }

/// An object as another program has it in /dev/shm, in use.
struct foreign_object {
    foreign_object() : fd(::shm_open(("/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
        REQUIRE(fd >= 0);
        REQUIRE(::ftruncate(fd, 4096) == 0);
    }
    foreign_object(const foreign_object&) = delete;
    ~foreign_object() {
        ::close(fd);
        ::shm_unlink(("/" + name).c_str());
    }
    bool is_there() const {
        struct stat mine {};
        struct stat named {};
        return ::fstat(fd, &mine) == 0 && ::stat(path_of(name).c_str(), &named) == 0 &&
               mine.st_ino == named.st_ino;
    }

    const std::string name = own_name();
    const int fd;
};

}  // namespace

TEST_CASE("named memory: a name never leads out of /dev/shm, and what is there stays") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const scratch_directory directory;
    const auto secret = directory.write("id_ed25519", "a secret", 0600);
    for (const auto& name : {secret, "../.." + secret, std::string(), std::string("."),
                             std::string(".."), std::string("a\0b", 3), std::string(201, 'x')}) {
        CHECK_THROWS_AS((void)shared_array<const char>::attach(name), std::invalid_argument);
        CHECK_THROWS_AS((void)share_options().name(name), std::invalid_argument);
        std::error_code error;
        CHECK_FALSE(base::open_named(name, O_RDONLY, error));
        CHECK(error == std::errc::invalid_argument);
        CHECK(base::remove_unused(name) == base::removal::none);
    }
    CHECK(read_file(secret) == "a secret");
}

TEST_CASE("named memory: another program's object can be attached, and its name stays") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const foreign_object object;
    {
        const auto array = shared_array<int>::attach(object.name);
        array(1023) = 5;
        CHECK(array.strategy() == sharing_strategy::file_system);
        CHECK(array.read_only()(1023) == 5);
    }
    CHECK(object.is_there());
    {
        const std::size_t shape[] = {1024};
        const auto array = shared_array<int>::from_descriptor(object.fd, 0, shape, trust_unsealed);
        CHECK(array(1023) == 5);
    }
    CHECK(object.is_there());
    (void)base::sweep(object.name);
    CHECK(object.is_there());
}

TEST_CASE("named memory: no array is made of another program's name") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const foreign_object object;
    try {
        const shared_array<int> array(share_options().name(object.name), 16);
        FAIL("nothing was thrown");
    } catch (const sharing_error& error) {
        CHECK(error.code() == std::errc::file_exists);
    }
    CHECK(object.is_there());
}

TEST_CASE(
    "named memory: of what arrives, another program's object is refused, as it has no seals") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const foreign_object object;
    std::error_code error;
    const auto arrived = base::own(base::duplicate(object.fd, error));
    try {
        (void)detail::shared_memory::arrived(arrived);
        FAIL("nothing was thrown");
    } catch (const sharing_error& refused) {
        CHECK(refused.code() == std::errc::operation_not_permitted);
        CHECK(std::string(refused.what()).find("not sealed") != std::string::npos);
    }
    CHECK(object.is_there());
}

TEST_CASE("named memory: the umask does not matter") {
    if (names_are_denied())
        return;
    for (const mode_t mask : {0777, 0200, 0400}) {
        const leak_guard guard;
        const auto before = ::umask(mask);
        std::string name;
        {
            const shared_array<int> array(with_name, 1000);
            name = array.name();
            CHECK(array.read_only().valid());
        }
        ::umask(before);
        CHECK_FALSE(exists(name));
    }
}

TEST_CASE("named memory: descriptor() is open as long as the array") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    shared_array<int> array(with_name, 1000);
    const int number = array.descriptor();
    CHECK(array.descriptor() == number);
    struct stat mine {};
    struct stat named {};
    REQUIRE(::fstat(number, &mine) == 0);
    REQUIRE(::stat(path_of(array.name()).c_str(), &named) == 0);
    CHECK(mine.st_ino == named.st_ino);
    const auto name = array.name();
    array = {};
    CHECK(::fcntl(number, F_GETFD) < 0);
    CHECK_FALSE(exists(name));
}

TEST_CASE("named memory: a shortage of descriptors does not take the strategy away for good") {
    if (names_are_denied())
        return;
    // A copy of its own, in which nobody has tried yet.
    CHECK(in_fork([] {
              std::vector<base::unique_fd> taken;
              const rlimit limit{64, 64};
              ::setrlimit(RLIMIT_NOFILE, &limit);
              for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
                  taken.emplace_back(fd);
              for (int i = 0; i < 2; ++i) {
                  try {
                      const shared_array<int> array(with_name, 1);
                      return 1;
                  } catch (const sharing_error& error) {
                      if (error.code() != std::errc::too_many_files_open)
                          return 2;
                  }
              }
              taken.clear();
              return shared_array<int>(with_name, 1).valid() ? 0 : 3;
          }) == 0);
}

TEST_CASE("named memory: a sweep opens no file of others, and says whether it has read all") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const foreign_object first;
    const std::string other = first.name + ".other";
    const base::unique_fd second(
        ::open(path_of(other).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    REQUIRE(second);
    {
        const base::unique_fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
        REQUIRE(::inotify_add_watch(watch.get(), path_of(first.name).c_str(), IN_OPEN) >= 0);
        CHECK(base::sweep(first.name).is_complete);
        char event[4096];
        CHECK(::read(watch.get(), event, sizeof event) == -1);
    }
    CHECK_FALSE(base::sweep(first.name, 1).is_complete);
    CHECK(first.is_there());
    CHECK(::unlink(path_of(other).c_str()) == 0);
}

TEST_CASE("named memory: a read-only handle never shows another array that has the name now") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const auto how = share_options().name(own_name());
    const shared_array<int> first(how, 1000);
    CHECK(first.read_only().shares_memory_with(first));
    REQUIRE(::shm_unlink(("/" + own_name()).c_str()) == 0);
    const shared_array<int> second(how, 4);
    try {
        (void)first.read_only();
        FAIL("the handle shows the other array");
    } catch (const sharing_error& error) {
        CHECK(error.code() == std::errc::no_such_file_or_directory);
    }
    CHECK(second.read_only().shares_memory_with(second));
}

TEST_CASE("named memory: an array larger than RLIMIT_FSIZE is an error that names the limit") {
    for (const auto strategy : get_all_sharing_strategies())
        CHECK(in_fork([&] {
                  const rlimit limit{1 << 20, 1 << 20};
                  ::setrlimit(RLIMIT_FSIZE, &limit);
                  try {
                      const shared_array<char> array(share_options().strategy(strategy), 4 << 20);
                      return 1;
                  } catch (const sharing_error& error) {
                      const std::string text = error.what();
                      return error.code() == std::errc::file_too_large &&
                                     text.find("RLIMIT_FSIZE") != text.npos
                                 ? 0
                                 : 2;
                  }
              }) == 0);
}

TEST_CASE("named memory: where /dev/shm is a link the name of a file is found") {
    if (names_are_denied())
        return;
    const int result = in_fork([] {
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", "/mnt", "tmpfs", 0, nullptr) != 0 || ::mkdir("/mnt/shm", 0755) != 0 ||
            ::mount("none", "/dev", "tmpfs", 0, nullptr) != 0 ||
            ::symlink("/mnt/shm", "/dev/shm") != 0)
            return 77;
        const shared_array<int> array(share_options().name("linked"), 1);
        return base::name_of(array.descriptor()) == "linked" ? 0 : 1;
    });
    if (result == 77)
        return skip("a mount namespace of its own needs rights");
    CHECK(result == 0);
}

}  // namespace named_memory_test
