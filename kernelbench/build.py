"""Constructing a candidate's model with the reference's weights in it, wherever it keeps them: what its constructor derives from them (packed
layouts, folded factors) is derived from the right numbers."""

import contextlib
from collections.abc import Iterator
from unittest import mock

import torch
from torch.nn.parameter import is_lazy

from kernelbench.modes import Mode
from kernelbench.wire import leaves, place

REGISTERS = ("register_parameter", "register_buffer")


class Written(Mode):
    """While active, after(tensor) runs after every operator that wrote to a tensor: initial values come in place."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func._schema.is_mutable:
            given = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
            for a in func._schema.arguments:
                if a.alias_info and a.alias_info.is_write and isinstance(given.get(a.name), torch.Tensor):
                    self.after(given[a.name])
        return result


class Weights:
    """The reference's weights by name, on their way into a model under construction. used: the names that found a place."""

    def __init__(self, values: dict[str, torch.Tensor]):
        self.values, self.used = values, set()
        self.firsts = {name.split(".")[0] for name in values}
        self.order: list[tuple[torch.nn.Module, str]] = []  # what was registered, and where

    def put(self, name: str, slot) -> None:
        """The reference's value, if there is one of that name and shape."""
        if name in self.values and isinstance(slot, torch.Tensor) and not is_lazy(slot):
            if self.values[name].shape == slot.shape:
                slot.data.copy_(self.values[name])
                self.used.add(name)

    def fill(self, root: torch.nn.Module, chosen=lambda name, slot: True):
        """The same for all slots of a model that are `chosen`."""
        for name, slot in [*root.named_parameters(), *root.named_buffers()]:
            if name in self.values and chosen(name, slot):
                self.put(name, slot)

    @contextlib.contextmanager
    def by_name(self, cls: type) -> Iterator[None]:
        """While a `cls` is constructed: every slot is filled when it gets its name within the model, and again whenever it was written to."""
        roots: list[torch.nn.Module] = []

        def registering(method):
            def register(root, name, *value, **options):
                method(root, name, *value, **options)
                if name in self.firsts and isinstance(root, torch.nn.Module) and "_parameters" in root.__dict__:
                    roots[:] = [root]
                    self.fill(root, lambda n, _: n == name or n.startswith(f"{name}."))

            return register

        def written(t):
            for root in roots:
                self.fill(root, lambda _, slot: not is_lazy(slot) and place(slot) == place(t))

        with contextlib.ExitStack() as patches:
            for name in (
                ("__setattr__", *REGISTERS) if isinstance(cls, type) and issubclass(cls, torch.nn.Module) else ()
            ):
                patches.enter_context(mock.patch.object(cls, name, registering(getattr(cls, name))))
            patches.enter_context(Written(written))
            yield

    @contextlib.contextmanager
    def learn(self) -> Iterator[None]:
        """While a model is constructed: the order in which its modules and theirs register what they hold."""
        with self._registering(lambda module, name: self.order.append((module, name))):
            yield

    def names(self, model: torch.nn.Module) -> list[str]:
        """The names, within `model`, of what was registered while it was constructed; "" for what did not stay there."""
        paths = {id(module): path for path, module in model.named_modules()}
        return [f"{paths[id(m)]}.{n}".lstrip(".") if id(m) in paths else "" for m, n in self.order]

    @contextlib.contextmanager
    def by_order(self, names: list[str]) -> Iterator[None]:
        """While a model is constructed again: every slot is filled when it is registered, also within a module that has no place in the model
        yet; `names` are those of the first time."""
        known: list[tuple[str, torch.nn.Module, str]] = []

        def register(module, name):
            if len(known) < len(names):
                known.append((names[len(known)], module, name))
                self.put(known[-1][0], _slot(module, name))

        def written(t):
            for full, module, name in known:
                slot = _slot(module, name)
                if isinstance(slot, torch.Tensor) and not is_lazy(slot) and place(slot) == place(t):
                    self.put(full, slot)

        with self._registering(register), Written(written):
            yield

    @contextlib.contextmanager
    def _registering(self, after) -> Iterator[None]:
        def patched(method):
            def register(module, name, *value, **options):
                method(module, name, *value, **options)
                after(module, name)

            return register

        with contextlib.ExitStack() as patches:
            for name in REGISTERS:
                patches.enter_context(mock.patch.object(torch.nn.Module, name, patched(getattr(torch.nn.Module, name))))
            yield


def derives(model: torch.nn.Module, names) -> bool:
    """Whether modules within the model hold tensors that the reference has not: they may come of its weights."""
    for path, module in model.named_modules():
        own = [f"{path}.{n}" for n in (*module._parameters, *module._buffers)]
        if path and (leaves([v for n, v in vars(module).items() if n[:1] != "_"]) or not set(own) <= set(names)):
            return True
    return False


def _slot(module: torch.nn.Module, name: str):
    return module._parameters.get(name, module._buffers.get(name))
