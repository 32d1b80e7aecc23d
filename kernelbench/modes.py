"""Dispatch modes that do not cost what torch's own do: those are wrapped so that Dynamo leaves their code alone, which imports Dynamo (two
seconds and 900 modules, at the first operator) and takes some 10 us of every operator. Where nobody has imported Dynamo, nothing is compiled."""

import functools
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    """A TorchDispatchMode whose `__torch_dispatch__` Dynamo leaves alone once it is there (the line around it, which calls it, it may compile)."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:  # what TorchDispatchMode asks before it wraps a class
        return False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__torch_dispatch__" in cls.__dict__:
            cls.__torch_dispatch__ = _unless_compiling(cls.__dict__["__torch_dispatch__"])


def _unless_compiling(dispatch):
    left_alone = torch._disable_dynamo(dispatch, recursive=True)

    @functools.wraps(dispatch)
    def inner(mode, func, types, args=(), kwargs=None):
        return (left_alone if "torch._dynamo" in sys.modules else dispatch)(mode, func, types, args, kwargs)

    return inner
