# SPDX-License-Identifier: BSL-1.0
# vcpkg install cohort --overlay-ports=src/package/vcpkg: builds the sources that this port lies in. vcpkg does not see
# when they change, so --no-binarycaching belongs to it then.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

vcpkg_find_acquire_program(PYTHON3)
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}/src/package"
    OPTIONS
        "-DPython3_EXECUTABLE=${PYTHON3}"
        -DCOHORT_INSTALL_CMAKEDIR=share/cohort)
vcpkg_cmake_install()
vcpkg_fixup_pkgconfig()

# cohortConfig.cmake names the release library, which programs of both kinds can use.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
