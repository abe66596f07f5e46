"""The one way in which functions are compiled."""

from __future__ import annotations

import fcntl
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, overload

from numba import njit
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.np import linalg

Function = TypeVar('Function', bound=Callable[..., Any])


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(*, allocates: bool) -> Callable[[Function], Function]: ...


def kernel(function: Function | None = None, *, allocates: bool = True) -> Any:
    """
    Compile a function on its first call, once for each kind of arguments, and keep it on disk.

    Constants in a call from another kernel count as what they are an example of: numba would
    compile the function again for `True`, for `False`, for `16` and for an int.

    `allocates=False`: the function makes no array (a slice is none), so numba need not count who
    holds those it is given. In the plants' steps, over dozens of arrays, counting took a quarter
    of the time. A function that makes one all the same does not compile.
    """
    if function is None:
        return lambda one: _compiled(one, allocates)
    return _compiled(function, allocates)


def _compiled(function: Callable[..., Any], allocates: bool) -> Any:
    # Said either way: numba would compile a callee as it does the function that calls it.
    counting: dict[str, Any] = {'_nrt': allocates}
    dispatcher: Any = njit(cache=True, fastmath=False, error_model='numpy', **counting)(function)
    template = dispatcher.get_call_template

    def call_template(args: Any, kws: Any) -> Any:
        plain = tuple(types.unliteral(one) for one in args)
        return template(plain, {name: types.unliteral(one) for name, one in kws.items()})

    dispatcher.get_call_template = call_template
    _keep_on_disk(dispatcher)
    return dispatcher


def inlined(function: Function) -> Function:
    """Compile a small function into each kernel that calls it."""
    compile_it: Any = njit(cache=True, fastmath=False, error_model='numpy', inline='always')
    dispatcher = compile_it(function)
    _keep_on_disk(dispatcher)
    return dispatcher


def _keep_on_disk(dispatcher: Any) -> None:
    _depend_on_callees(dispatcher)
    _take_turns(_on_disk(dispatcher))


def _take_turns(file: Any) -> None:
    """
    Let one process at a time read or write what is kept of a function.

    Numba writes an index and data, one after the other, and numbers the data by the index it has
    read: processes that compile at the same time would lose entries, or run each other's.
    """
    load, save = file.load, file.save

    def load_alone(*arguments: Any) -> Any:
        with _LOCK.held(Path(file._cache_path)):
            return load(*arguments)

    def save_alone(*arguments: Any) -> None:
        with _LOCK.held(Path(file._cache_path)):
            save(*arguments)

    file.load, file.save = load_alone, save_alone


class _CacheLock:
    """A lock of all processes on a folder; one that is held may be taken again."""

    def __init__(self) -> None:
        self._mine = threading.RLock()
        self._depth = 0

    @contextmanager
    def held(self, folder: Path) -> Iterator[None]:
        with self._mine:
            try:
                # One inside another, whatever the folder, needs no second lock.
                file = None if self._depth else (folder / 'kernels.lock').open('a')
            except OSError:  # there is nothing yet, or nobody may write here
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
    Have what is on disk go stale with the kernels and numbers that its module imports.

    Numba looks at the file of the function alone: after an update a kernel whose callee in another
    file has changed would go on with the old one, or look for a module that is gone.
    """
    parts = [repr(_on_disk(dispatcher)._source_stamp)]
    for name, value in sorted(dispatcher.py_func.__globals__.items()):
        if isinstance(value, Dispatcher):
            parts.append(repr(_on_disk(value)._source_stamp))
        elif isinstance(value, int | float | tuple):
            parts.append(f'{name} {value!r}')
    _on_disk(dispatcher)._source_stamp = hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _on_disk(dispatcher: Any) -> Any:
    """Return numba's file of what a function was compiled to."""
    return dispatcher._cache._cache_file


def _leave_scipy_out() -> None:
    """
    Have numba not import scipy.linalg with its first function.

    Numba asks there whether this computer has a BLAS; scipy, which we require, has one. The
    import took a sixth of a node's start. Kernels with products of matrices or linear systems are
    compiled as before, and import it when they first run. The question is none of numba's public
    interface: a numba without it is left as it is.
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
