# SPDX-License-Identifier: BSL-1.0
"""Conan 2: `conan create src/package` builds the sources that this recipe lies in, by CMake."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2.0"

ROOT = os.path.join("..", "..")  # of the repository, from here
CONFIG = os.path.join("lib", "cmake", "cohort")


class CohortRecipe(ConanFile):
    name = "cohort"
    description = "Groups of worker processes that can be awaited"
    license = "BSL-1.0"
    topics = ("process", "multiprocessing", "coroutines", "asio", "linux")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, ROOT, "meson.build"))
        self.version = re.search(r"version: '([0-9.]+)'", text).group(1)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, ROOT)
        for pattern in ["LICENSE", "meson.build", "include/*", "src/*"]:
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        self.folders.root = ROOT
        self.folders.source = "."
        self.folders.build = f"build-conan-{self.settings.build_type}".lower()
        self.folders.generators = os.path.join(self.folders.build, "generators")

    def requirements(self):
        # Those that the public headers include, and fmt's code, are for the program too.
        self.requires("asio/[>=1.22.1]", transitive_headers=True)
        self.requires("fmt/[>=9]", transitive_headers=True, transitive_libs=True)
        self.requires("nlohmann_json/[>=3.11]", transitive_headers=True)
        self.requires("liburing/[>=2.3]")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("cohort is for Linux only")
        check_min_cppstd(self, 20)

    def generate(self):
        for generator in [CMakeToolchain, CMakeDeps, PkgConfigDeps]:
            generator(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join("src", "package"))
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))  # it has the paths of the build

    def package_info(self):
        # For CMake: the package's own cohortConfig.cmake.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [CONFIG]
        # For other build systems.
        self.cpp_info.set_property("pkg_config_name", "cohort")
        self.cpp_info.libs = ["cohort"]
        self.cpp_info.system_libs = ["pthread"]
        if not self.options.shared:
            flags = ["-Wl,-z,nodelete", "-Wl,--wrap=__cxa_throw"]
            self.cpp_info.exelinkflags = flags
            self.cpp_info.sharedlinkflags = flags
            if "backtrace" in load(self, os.path.join(self.package_folder, CONFIG, "cohortConfig.cmake")):
                self.cpp_info.system_libs.append("backtrace")  # of GCC
