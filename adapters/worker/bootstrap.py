"""Start a worker: ``python bootstrap.py NAME=FOLDER...``, in any interpreter, with or without a hardmask of its own.

The folders are those of the packages of the parent's hardmask. They are imported from there under their own names, and
nothing else of the parent's interpreter is seen. Exit status 78 means that the interpreter cannot run a worker; the
last line of standard error says why.

This file must be readable by old interpreters, and imports nothing of hardmask.
"""

import os
import sys

REFUSED = 78


def refuse(why: str) -> None:
    sys.stderr.write(why + "\n")
    sys.stderr.flush()
    os._exit(REFUSED)


def install(folders: dict) -> None:  # type: ignore[type-arg]  # old interpreters know no dict[str, str]
    """Make ``hardmask.NAME`` importable from each folder, before whatever hardmask this interpreter may have."""
    from importlib.abc import MetaPathFinder
    from importlib.machinery import ModuleSpec
    from importlib.util import spec_from_file_location

    class Finder(MetaPathFinder):
        def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]  # as above
            if name == "hardmask":
                spec = ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = []
                return spec
            folder = folders.get(name[len("hardmask.") :]) if name.startswith("hardmask.") else None
            if folder is None:
                return None
            start = os.path.join(folder, "__init__.py")
            return spec_from_file_location(name, start, submodule_search_locations=[folder])

    sys.meta_path.insert(0, Finder())


def main() -> None:
    # What a subject prints, from Python or from C, must not reach the frames.
    read, write = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    # The folder of this script is no place to import from.
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    if sys.version_info < (3, 11):  # noqa: UP036  # it runs wherever a user points it to
        refuse(f"it is Python {sys.version_info[0]}.{sys.version_info[1]}, and hardmask needs 3.11 or newer")
    try:
        import numpy  # noqa: F401
    except Exception as problem:
        said = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
        refuse(f"NumPy cannot be imported there ({said}), so run '-m pip install numpy' with it")
    install(dict(argument.split("=", 1) for argument in sys.argv[1:]))
    del sys.argv[1:]
    from hardmask.adapters.worker.serve import serve

    serve(read, write)


if __name__ == "__main__":
    main()
