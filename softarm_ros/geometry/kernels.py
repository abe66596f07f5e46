"""The one way in which functions are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import types

Function = TypeVar('Function', bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """
    Compile a function on its first call, once for each kind of arguments, and keep it on disk.

    Constants in a call from another kernel count as what they are an example of: numba would
    compile the function again for `True`, for `False`, for `16` and for an int.
    """
    dispatcher: Any = njit(cache=True, fastmath=False, error_model='numpy')(function)
    template = dispatcher.get_call_template

    def call_template(args: Any, kws: Any) -> Any:
        plain = tuple(types.unliteral(one) for one in args)
        return template(plain, {name: types.unliteral(one) for name, one in kws.items()})

    dispatcher.get_call_template = call_template
    return dispatcher


def inlined(function: Function) -> Function:
    """Compile a small function into each kernel that calls it."""
    compiled: Any = njit(cache=True, fastmath=False, error_model='numpy', inline='always')
    return compiled(function)
