#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What a stranger gets: check.py WHAT source build prefix libdir compiler

WHAT is a check_* below. A tiny project outside of the tree builds with the package, installed somewhere else than it
was configured for, or with the library's sources, and its program prints what its source says. What CMake builds and
installs is what Meson does. The shared library shows no more than it should. No public name is
undocumented."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

PUBLIC = re.compile(r"(typeinfo for |typeinfo name for |vtable for |void )?cohort::|(__cxa_throw|_exit|_Exit)$")
EXCEPTIONS = ["codec_error", "group_stopped", "process_exception", "process_exited_exception",
              "process_raised_exception", "result_error", "spawn_error"]

what = sys.argv[1]
source, build = Path(sys.argv[2]), Path(sys.argv[3])
prefix, libdir, compiler = sys.argv[4:]
here = source / "tests/packages"
passed = 0
skipped = 0


def end(failed, skipped=0):
    print(f"[cases] {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


def fail(text):
    print(text)
    end(1)


def need(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            print(f"[skipped] package-{what}: {tool} is not installed")
            end(0, 1)


def run(*command, **how):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **how)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def is_clang():
    return "clang" in run(compiler, "--version")


def frugal():
    """GCC looks for memory to free after each third that it allocates; these options save a tenth of its time."""
    return [] if is_clang() else ["--param=ggc-min-expand=400", "--param=ggc-min-heapsize=1000000"]


def build_quietly(*command, **how):
    """A stranger's first build says nothing that he would have to look into."""
    told = run(*command, **how)
    warnings = [line for line in told.splitlines() if "warning:" in line]
    if warnings:
        fail(f"{' '.join(map(str, command))}: it warns:\n" + "\n".join(warnings))
    return told


def check_program(program, text, **how):
    """Runs it and compares what it prints with what its source says; counts it."""
    global passed
    run(sys.executable, source / "tests/support/check_example.py", program, text, **how)
    passed += 1


def respell(text, folder):
    """A copy of a program for Boost.Asio, in a new folder; none if the compiler has no Boost."""
    global skipped
    command = [compiler, "-E", "-x", "c++", "-include", "boost/version.hpp", os.devnull]
    if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        print(f"[skipped] package-{what}: Boost is not installed")
        skipped += 1
        return None
    folder.mkdir()
    run(sys.executable, source / "tests/boost/respell.py", folder, text)
    return folder / Path(text).name


def install(scratch):
    """The prefix of an installation that has been moved; as an installer would, changes only cohort.pc."""
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch / "moved")
    moved = scratch / "moved" / prefix.lstrip("/")
    package = moved / libdir / "pkgconfig/cohort.pc"
    package.write_text(re.sub("^prefix=.*", f"prefix={moved}", package.read_text(), flags=re.MULTILINE))
    return moved


def has_static_fmt(scratch):
    """The system's, or one that is made here."""
    global skipped
    if Path(run(compiler, "-print-file-name=libfmt.a").strip()).is_absolute():
        return True
    made = scratch / "fmt.o"
    command = [compiler, "-std=c++20", "-c", here / "static_fmt.cpp", "-o", made]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print("[skipped] package-pkgconfig: -static: there is no libfmt.a, and its header is another one")
        skipped += 1
        return False
    run("ar", "rcs", scratch / "libfmt.a", made)
    return True


def check_pkgconfig(scratch):
    need("pkg-config")
    moved = install(scratch)
    program, text = scratch / "first", source / "examples/first.cpp"
    environment = {**os.environ, "PKG_CONFIG_PATH": str(moved / libdir / "pkgconfig")}

    objects = {}

    def ask(*options):
        return run("pkg-config", *options, env=environment).split()

    def compiled(text, flags):
        """The object file; there is one for all that are compiled alike."""
        made = objects.setdefault((text, *flags), scratch / f"{len(objects)}.o")
        if not made.exists():
            build_quietly(compiler, "-std=c++20", "-g", "-Wall", "-Wextra", *flags, "-c", text, "-o", made)
        return made

    def compile_with(which, *options, text=text, package="cohort"):
        made = compiled(text, ask("--cflags", *which, package))
        link = run if "-static" in options else build_quietly  # there the linker warns of dlopen
        link(compiler, made, *options, *ask("--libs", *which, package), "-o", program)

    shared = {**os.environ, "LD_LIBRARY_PATH": str(moved / libdir)}
    compile_with([])
    check_program(program, text, env=shared)
    if on_boost := respell(text, scratch / "examples"):
        compile_with([], text=on_boost, package="cohort-boost")
        check_program(program, text, env=shared)
    for library in (moved / libdir).glob("libcohort.so*"):
        library.unlink()
    compile_with(["--static"])
    check_program(program, text)
    compile_with(["--static"], "-static-libstdc++")
    check_program(program, text)
    if has_static_fmt(scratch):
        compile_with(["--static"], "-static", f"-L{scratch}")
        check_program(program, text)


def check_cmake(scratch):
    need("cmake")
    moved = install(scratch)
    project, made = scratch / "stranger", scratch / "made"
    shutil.copytree(here / "cmake", project)
    text = shutil.copy(here / "failures.cpp", project)
    on_boost = respell(text, project / "boost")
    run("cmake", "-S", project, "-B", made, f"-DCMAKE_PREFIX_PATH={moved}",
        f"-DCMAKE_CXX_COMPILER={compiler}")
    build_quietly("cmake", "--build", made)
    check_program(made / "failures", text)
    check_program(made / "failures_static", text)
    if on_boost:
        check_program(made / "failures_boost", text)


def facts(library, names):
    """What a library shows: dynamic facts of a shared one, and names that are there whatever the optimization."""
    dynamic = run("readelf", "-dW", library) if ".so" in library.name else ""
    kept = {" ".join(line.split()[1:]) for line in dynamic.splitlines()
            if re.search(r"\((NEEDED|SONAME|FLAGS_1)\)", line)}
    for line in run("nm", *names, "--defined-only", library).splitlines():
        if found := re.fullmatch(r"[0-9a-f]+ ([TDBR] .*)", line):
            kept.add(found[1])
    return kept


def compare_installed(ours, theirs):
    """What CMake installs is what Meson installs."""
    global passed
    lists = [sorted(str(path.relative_to(root)) for path in root.rglob("*")) for root in [ours, theirs]]
    if lists[0] != lists[1]:
        fail(f"CMake and Meson install different files: {set(lists[0]) ^ set(lists[1])}")
    for file in [path for path in ours.rglob("*") if path.is_file()]:
        other = theirs / file.relative_to(ours)
        if file.suffix == ".a" or ".so" in file.name:
            names = ["-g"] if file.suffix == ".a" else ["-D"]
            if different := facts(file, names) ^ facts(other, names):
                fail(f"{file.name} of CMake and of Meson differ in:\n" + "\n".join(sorted(different)))
        elif file.read_bytes() != other.read_bytes():
            fail(f"{file.name} of CMake and of Meson differ:\n{file.read_text()}\n{other.read_text()}")
    passed += 1


def check_top_level(scratch):
    """The library alone: it configures, installs by itself, and has the libraries that were asked for."""
    global passed
    made = scratch / "alone"
    run("cmake", "-G", "Ninja", "-S", source / "src/package", "-B", made, f"-DCMAKE_CXX_COMPILER={compiler}",
        "-DBUILD_SHARED_LIBS=OFF")
    targets = run("cmake", "--build", made, "--target", "help")
    for target, there in [("install", True), ("cohort_static", True), ("cohort", False)]:
        if bool(re.search(f"^{target}:", targets, re.MULTILINE)) != there:
            fail(f"{target} is {'not ' if there else ''}there with BUILD_SHARED_LIBS=OFF:\n{targets}")
    passed += 1


def check_strict(scratch):
    """A list of sources that CMake would read wrongly is an error."""
    global passed
    copy = scratch / "copy"
    shutil.copytree(source / "src", copy / "src", ignore=lambda _, names: [n for n in names if n[-2:] == "pp"])
    shutil.copy(source / "meson.build", copy)
    script = scratch / "read.cmake"
    script.write_text(f"include({copy}/src/package/read_meson.cmake)\ncohort_read_sources()\n")
    run("cmake", "-P", script)
    with (copy / "src/base/meson.build").open("a") as file:
        file.write("if true\n    cohort_sources += files('values/none.cpp')\nendif\n")
    done = subprocess.run(["cmake", "-P", script], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0 or "src/base/meson.build" not in done.stdout:
        fail(f"a list of sources in another form is taken:\n{done.stdout}")
    passed += 1


def check_source(scratch):
    """One build of the library for all: the second way finds everything built, which is itself a check."""
    need("cmake", "nm", "readelf")
    check_strict(scratch)
    check_top_level(scratch)
    project, made = scratch / "stranger", scratch / "made"
    shutil.copytree(here / "source", project)
    text = shutil.copy(here / "failures.cpp", project)
    for how in ["add_subdirectory", "FetchContent"]:
        run("cmake", "-G", "Ninja", "-S", project, "-B", made, f"-Dcohort={source}", f"-Dhow={how}",
            f"-DCMAKE_CXX_COMPILER={compiler}",
            f"-DCMAKE_CXX_FLAGS={' '.join(['-O0', '-DCOHORT_NOTE_REACHED', *frugal()])}",  # as Meson's, with tests
            f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_INSTALL_LIBDIR={libdir}",
            "-DCOHORT_INSTALL=ON", "-DCOHORT_UNITY_SIZE=60")
        told = build_quietly("cmake", "--build", made, "--parallel", "1")
        if how == "FetchContent" and "Building" in told:
            fail(f"FetchContent builds something else than add_subdirectory:\n{told}")
        check_program(made / "failures", text)
        check_program(made / "failures_static", text)
    run("cmake", "--install", made, env={**os.environ, "DESTDIR": str(scratch / "by_cmake")})
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch / "by_meson")
    compare_installed(scratch / "by_cmake", scratch / "by_meson")


def check_recipes(scratch):
    """Of the recipes for Conan and vcpkg, what can be seen without these tools."""
    global passed
    recipes = source / "src/package"
    for file in [recipes / "conanfile.py", recipes / "test_package/conanfile.py"]:
        compile(file.read_text(), str(file), "exec")
    port = json.loads((recipes / "vcpkg/vcpkg.json").read_text())
    version = run("meson", "introspect", "--projectinfo", build)
    if port["version"] != json.loads(version)["version"]:
        fail(f"vcpkg.json is for another version: {port['version']}")
    passed += 1

    need("cmake")
    script = scratch / "port.cmake"  # with stand-ins for what vcpkg gives a port
    names = re.findall(r"^(vcpkg_\w+)\(", (recipes / "vcpkg/portfile.cmake").read_text(), re.MULTILINE)
    script.write_text("".join(f"macro({name})\n  list(APPEND said {name} ${{ARGN}})\nendmacro()\n" for name in names)
                      + f"set(CURRENT_PORT_DIR {recipes}/vcpkg)\nset(CURRENT_PACKAGES_DIR {scratch}/none)\n"
                      + f"include({recipes}/vcpkg/portfile.cmake)\nmessage(\"${{said}}\")\n")
    said = run("cmake", "-P", script).strip().split(";")
    for path in [said[said.index("SOURCE_PATH") + 1] + "/CMakeLists.txt", said[said.index("FILE_LIST") + 1]]:
        if not Path(path).exists():
            fail(f"portfile.cmake names a file that does not exist: {path}")
    passed += 1


def check_meson(scratch):
    project, made = scratch / "stranger", scratch / "made"
    shutil.copytree(here / "meson", project)
    text = shutil.copy(here / "failures.cpp", project)
    on_boost = respell(text, project / "boost")
    ours = project / "subprojects/cohort"
    for folder in ["include", "src"]:
        shutil.copytree(source / folder, ours / folder)
    for file in [source / "meson.build", source / "meson_options.txt", *source.glob("subprojects/*.wrap")]:
        (ours / file.relative_to(source)).parent.mkdir(exist_ok=True)
        shutil.copy(file, ours / file.relative_to(source))
    run("meson", "setup", made, project, "--force-fallback-for=cohort", "-Ddebug=false", "-Dunity_size=60",
        env={**os.environ, "CXX": compiler, "CXXFLAGS": " ".join(frugal())})
    build_quietly("ninja", "-C", made)
    check_program(made / "failures", text)
    if on_boost:
        check_program(made / "failures_boost", text)


def check_symbols(scratch):
    global passed
    need("nm", "readelf", "objcopy")
    library = install(scratch) / libdir / "libcohort.so"
    # Public names may have the name of a room whose namespace is another: that of cuda is device.
    rooms = "|".join(["device"] + [folder.name for folder in (source / "src").iterdir()
                                   if folder.name not in ["cuda", "lines"]])
    names = [line.split(None, 2)[2]
             for line in run("nm", "-DC", "--defined-only", library).splitlines()]
    inner = re.compile(f"cohort::({rooms})(_room)?::")  # as a parameter it may be known
    leaks = [name for name in names if not PUBLIC.match(name) or inner.search(name.split("(")[0])]
    if leaks:
        fail("exported, but not public:\n" + "\n".join(leaks))
    for name in EXCEPTIONS:
        if f"typeinfo for cohort::{name}" not in names:
            fail(f"cannot be caught by type: cohort::{name}")
    passed += 1

    dynamic = run("readelf", "-dW", library)
    for fact in [r"\(SONAME\).*\[libcohort\.so\.0\]", r"\(FLAGS_1\).*\bNODELETE\b"]:
        if not re.search(fact, dynamic):
            fail(f"not in its dynamic section: {fact}\n{dynamic}")
    passed += 1

    bare = scratch / "bare.so"
    run("objcopy", "--strip-debug", library, bare)
    if os.fsencode(source) in bare.read_bytes():
        fail(f"it names {source}, so that a build elsewhere would differ")
    passed += 1


def check_reference(scratch):
    global passed
    need("doxygen")
    settings = f"@INCLUDE = {build}/src/package/Doxyfile\nOUTPUT_DIRECTORY = {scratch}\nGENERATE_XML = YES\n"
    run("doxygen", "-", input=settings)  # a name without words is an error
    for page in ["classcohort_1_1group.html", "namespacecohort.html"]:
        if not (scratch / "html" / page).exists():
            fail(f"the reference has no {page}")
    for page in (scratch / "xml").glob("*.xml"):  # older Doxygens let enumerators pass
        for value in ElementTree.parse(page).findall(".//memberdef[@prot='public']/enumvalue"):
            if not "".join(value.find("briefdescription").itertext()).strip():
                fail(f"not documented: {value.findtext('name')} in {page.name}")
    passed += 1


with tempfile.TemporaryDirectory(prefix="cohort-test-package-") as folder:
    globals()[f"check_{what}"](Path(folder))
    end(0, skipped)
