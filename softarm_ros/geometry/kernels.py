"""Compilation of functions with numba; every kernel is compiled here."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from typing import overload as variant

from numba import njit
from numba.core import sigutils, types
from numba.core.dispatcher import Dispatcher
from numba.extending import overload
from numba.np import arrayobj, linalg

Function = TypeVar('Function', bound=Callable[..., Any])
_njit: Any = njit  # its types lack options that begin with no_ and _
_OPTIONS: dict[str, Any] = {'cache': True, 'fastmath': False, 'error_model': 'numpy'}
_made: list[Any] = []  # all kernels of this process


def _shapes_differ(source: Any, target: Any) -> None:
    """Raise the error for an array assigned to a slice of another shape."""


@overload(_shapes_differ)
def _compiled_shapes_differ(source: Any, target: Any) -> Any:
    def say(source: Any, target: Any) -> None:
        raise ValueError('cannot assign slice from input of different size')

    return say


# Numba's own message contains both shapes. It compiles this text into each kernel that assigns to
# a slice and into each caller, which takes a third of the compile time of a model's kernels. The
# name is not part of numba's public interface; a numba without it only compiles longer.
arrayobj.raise_with_shape_context = _shapes_differ


class KernelCacheError(RuntimeError):
    """No folder can hold compiled kernels: each process would compile for minutes."""


@variant
def kernel(function: Function) -> Function: ...


@variant
def kernel(*, allocates: bool) -> Callable[[Function], Function]: ...


def kernel(function: Function | None = None, *, allocates: bool = True) -> Any:
    """
    Compile a function on its first call, once per set of argument types, and cache it on disk.

    A constant in a call from another kernel counts as any value of its type; otherwise, numba
    would compile the function again for `True`, for `False`, for `16` and for an int.

    `allocates=False`: the function creates no array (a slice is none), so numba can skip reference
    counting for its arguments. In the plants' steps, with dozens of arrays, counting took a
    quarter of the time. A function that does create an array then fails to compile.
    """
    if function is None:
        return lambda one: _compiled(one, allocates)
    return _compiled(function, allocates)


def _compiled(function: Callable[..., Any], allocates: bool) -> Any:
    """
    Return the dispatcher for Python, which compiles with a wrapper that unpacks Python objects.

    Kernels call a second dispatcher, which compiles without wrappers: for dozens of arrays, these
    take as long to compile as the function. If both are called with the same argument types, the
    function is compiled twice, unless Python called it first.
    """
    # Always given: without them, numba would compile a callee with the options of its caller.
    options = {**_OPTIONS, '_nrt': allocates, 'no_cfunc_wrapper': True}
    dispatcher = _cached(function, **options)
    inner = _cached(function, **options, no_cpython_wrapper=True)
    key, compile_inner = inner._cache._index_key, inner.compile
    inner._cache._index_key = lambda *of: (*key(*of), 'without wrapper')
    template = inner.get_call_template

    def compile_once(signature: Any) -> Any:
        kinds = tuple(sigutils.normalize_signature(signature)[0])
        if kinds in dispatcher.overloads:
            inner.overloads.setdefault(kinds, dispatcher.overloads[kinds])
        return compile_inner(signature)

    def call_template(args: Any, kws: Any) -> Any:
        plain = tuple(types.unliteral(one) for one in args)
        return template(plain, {name: types.unliteral(one) for name, one in kws.items()})

    inner.compile = compile_once
    dispatcher.get_call_template = call_template
    dispatcher.get_overload = inner.get_overload
    dispatcher.inner = inner
    _keep_on_disk(dispatcher)
    _keep_on_disk(inner)
    return dispatcher


def inlined(function: Function) -> Function:
    """Compile a small function into each kernel that calls it."""
    dispatcher: Any = _cached(function, **_OPTIONS, inline='always')
    _keep_on_disk(dispatcher)
    return dispatcher


def _cached(function: Callable[..., Any], **options: Any) -> Any:
    """Return numba's dispatcher of a function, with its cache on disk."""
    try:
        return _njit(**options)(function)
    except RuntimeError as error:
        if 'no locator available' not in str(error):
            raise
        beside = Path(function.__code__.co_filename).parent
        raise KernelCacheError(
            f'compiled kernels cannot be kept on disk: neither {beside / "__pycache__"} nor '
            f'~/.cache/numba (HOME is {os.environ.get("HOME")}) is writable; set NUMBA_CACHE_DIR '
            'to a folder that is'
        ) from None


def _keep_on_disk(dispatcher: Any) -> None:
    _depend_on_callees(dispatcher)
    _take_turns(_on_disk(dispatcher))
    _made.append(dispatcher)


def kept_files() -> set[Path]:
    """Return the cache files of all kernels that this process has compiled or loaded."""
    return {Path(_on_disk(one)._index_path) for one in _made if one.overloads}


def kernel_packages() -> set[str]:
    """Return the names of packages that have kernels in this process."""
    return {one.py_func.__module__.partition('.')[0] for one in _made}


def kept_beside(function: Any) -> Path:
    """Return the folder of a kernel's cache files."""
    return Path(_on_disk(function)._cache_path)


def _take_turns(file: Any) -> None:
    """
    Let only one process at a time read or write the cache files of a function.

    Numba writes an index and then a data file, which it numbers by the index it has read.
    Processes that compile at the same time would lose entries, or run each other's code.
    """
    load, save = file.load, file.save

    def load_alone(*arguments: Any) -> Any:
        with _LOCK.held(Path(file._cache_path)):
            return load(*arguments)

    def save_alone(*arguments: Any) -> None:
        folder = Path(file._cache_path)
        with _LOCK.held(folder):
            try:
                save(*arguments)
            except OSError as error:
                raise KernelCacheError(
                    f'compiled kernels cannot be kept in {folder} ({error.strerror}); free space '
                    'there, or set NUMBA_CACHE_DIR to another folder'
                ) from None

    file.load, file.save = load_alone, save_alone


class _CacheLock:
    """Lock on a folder against other processes and threads; its holder may take it again."""

    def __init__(self) -> None:
        self._mine = threading.RLock()
        self._depth = 0

    @contextmanager
    def held(self, folder: Path) -> Iterator[None]:
        with self._mine:
            try:
                # A nested call, for any folder, needs no second lock.
                file = None if self._depth else (folder / 'kernels.lock').open('a')
            except OSError:  # the folder does not exist yet, or is not writable
                file = None
            self._depth += 1
            try:
                if file is not None:
                    fcntl.flock(file, fcntl.LOCK_EX)
                yield
            finally:
                self._depth -= 1
                if file is not None:
                    file.close()


_LOCK = _CacheLock()


def _depend_on_callees(dispatcher: Any) -> None:
    """
    Make the cache entry depend on the kernels and constants in the function's module.

    Numba checks only the file of the function itself. After an update, a kernel whose callee in
    another file has changed would still run the old callee, or look for a module that is gone.
    """
    parts = [repr(_on_disk(dispatcher)._source_stamp)]
    for name, value in sorted(dispatcher.py_func.__globals__.items()):
        if isinstance(value, Dispatcher):
            parts.append(repr(_on_disk(value)._source_stamp))
        elif isinstance(value, int | float | tuple):
            parts.append(f'{name} {value!r}')
    _on_disk(dispatcher)._source_stamp = hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _on_disk(dispatcher: Any) -> Any:
    """Return numba's object for the cache files of a function."""
    return dispatcher._cache._cache_file


def _leave_scipy_out() -> None:
    """
    Keep numba from importing scipy.linalg with its first function.

    Numba imports it to check whether this computer has a BLAS; scipy, which we require, has one.
    The import took a sixth of a node's start time. Kernels with products of matrices or linear
    systems are compiled as before, and import it when they first run. `ensure_blas` is not part of
    numba's public interface; a numba without it is left unchanged.
    """
    ask = getattr(linalg, 'ensure_blas', None)
    if ask is None:
        return

    def ensure_blas() -> None:
        loading = sys.modules.get('numba.np.arraymath')
        if loading is None or hasattr(loading, '_HAVE_BLAS'):
            ask()

    linalg.ensure_blas = ensure_blas


_leave_scipy_out()
