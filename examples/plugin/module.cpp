// SPDX-License-Identifier: BSL-1.0
// The extension module `sums`. Of the files here only this one knows Python.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "sums.hpp"

#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace {

/// Lets other threads of Python run while this one waits.
class without_gil {
public:
    without_gil() : state_(PyEval_SaveThread()) {}
    without_gil(const without_gil&) = delete;
    without_gil& operator=(const without_gil&) = delete;
    ~without_gil() { PyEval_RestoreThread(state_); }

private:
    PyThreadState* state_;
};

/// Runs Python's handlers of the signals that came. @return whether one raised an exception
bool signal_raised() {
    const auto gil = PyGILState_Ensure();
    const bool raised = PyErr_CheckSignals() != 0;
    PyGILState_Release(gil);
    return raised;
}

/// @return empty: an exception of Python is set
std::string text_of(PyObject* object) {
    const char* const text = object == nullptr ? nullptr : PyUnicode_AsUTF8(object);
    return text == nullptr ? "" : text;
}

/// The program stands beside this extension. @return empty: an exception of Python is set
std::string worker_program(PyObject* module) {
    PyObject* const extension = PyModule_GetFilenameObject(module);
    const std::filesystem::path path = text_of(extension);
    Py_XDECREF(extension);
    return path.empty() ? "" : std::filesystem::absolute(path).replace_filename("sums_worker");
}

PyObject* add_up_files(PyObject* module, PyObject* arguments) {
    try {
        std::vector<std::string> files;
        for (Py_ssize_t i = 0; i < PyTuple_Size(arguments); ++i)
            files.push_back(text_of(PyTuple_GetItem(arguments, i)));
        const auto program = worker_program(module);
        if (PyErr_Occurred())
            return nullptr;
        double sum = 0;
        {
            const without_gil waiting;
            sum = add_up(std::move(files), program, signal_raised);
        }
        return PyFloat_FromDouble(sum);
    } catch (const std::exception& e) {
        if (!PyErr_Occurred())  // else it was interrupted, and KeyboardInterrupt is set
            PyErr_SetString(PyExc_RuntimeError, e.what());
        return nullptr;
    }
}

PyMethodDef methods[] = {
    {"add_up", add_up_files, METH_VARARGS, "The sum of all numbers in the files of these names."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "sums", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_sums() { return PyModule_Create(&definition); }
