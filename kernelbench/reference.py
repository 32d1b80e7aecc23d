"""What the referee knows of a task and a candidate never sees: the model, its weights, the inputs of every draw, the right outputs."""

import copy
import hashlib
import hmac
import json
import random
import threading

import torch

from kernelbench import Task
from kernelbench.wire import flatten


class Reference:
    """A task's model with its weights, its inputs by name of the draw, its expected outputs; filled in lazily, shared by a task's candidates."""

    generating = threading.Lock()  # torch's default generators are global

    def __init__(self, task: Task, device: str, key: bytes, keep_bytes: int = 1 << 30):
        self.task, self.device, self.key, self.keep_bytes = task, device, key, keep_bytes
        self.lock, self.timing_lock, self.outputs, self.timing = threading.Lock(), threading.Lock(), {}, None
        self.names = {"__name__": "task"}
        exec(compile(task.source, task.name, "exec"), self.names)
        if device == "cpu":
            self.names.update(self.names.get("SMALL", {}))
        with self.generating:
            self._seed("init")
            init = self.names["get_init_inputs"]()
            keyword = (
                isinstance(init, (list, tuple))
                and len(init) == 2
                and isinstance(init[0], (list, tuple))
                and isinstance(init[1], dict)
            )
            self.args, self.kwargs = (
                (list(init[0]), init[1]) if keyword else ([], init) if isinstance(init, dict) else (list(init), {})
            )
            self.seed = self._seed("weights")
            self.plain = self.names["Model"](*copy.deepcopy(self.args), **self.kwargs).to(device)
            self.model, self.perturbed = copy.deepcopy(self.plain), False
            for slot in [*self.model.parameters(), *self.model.buffers()]:
                if slot.is_floating_point() and slot.numel() and ((slot == 0).all() or (slot == 1).all()):
                    slot.data += torch.rand_like(slot) * 0.5 - (0.0 if (slot == 1).all() else 0.25)
                    self.perturbed = True
        self.weights = {n: t.detach() for n, t in [*self.model.named_parameters(), *self.model.named_buffers()]}

    def number(self, *name) -> int:
        """63 secret bits that depend on the run's key, the task and `name` alone."""
        text = json.dumps([self.task.key, *name]).encode()
        return int.from_bytes(hmac.new(self.key, text, hashlib.sha256).digest()[:8], "big") >> 1

    def _seed(self, *name) -> int:
        seed = self.number(*name)
        torch.manual_seed(seed)
        random.seed(seed)
        return seed

    def inputs(self, *name):
        """Fresh inputs of the draw `name`. Draws named ("check", 2), ("check", 3).. have float inputs negated, scaled or shifted."""
        with self.generating:
            self._seed("inputs", *name)
            with torch.device(self.device):
                given = list(self.names["get_inputs"]())
        how = (
            ("negate", "scale", "shift")[self.number("transform", *name) % 3]
            if name[0] == "check" and name[1] >= 2
            else None
        )
        return [self._move(v, how) for v in given]

    def _move(self, value, how):
        if isinstance(value, torch.Tensor):
            value = value.detach().to(self.device)
            if how and value.is_floating_point():
                value = {"negate": lambda: -value, "scale": lambda: value * 3, "shift": lambda: value + 0.5}[how]()
            return value
        return type(value)(self._move(v, how) for v in value) if isinstance(value, (list, tuple)) else value

    def forward(self, model, inputs, seed: int):
        """(tree, output tensors, the inputs' tensors after the call): what a right candidate must give."""
        tensors, after = [], []
        mine = copy.deepcopy(inputs)
        with torch.no_grad(), self.generating:
            torch.manual_seed(seed)
            tree = flatten(model(*mine), tensors)
        flatten(mine, after)
        return tree, [t.clone() for t in tensors], after

    def expected(self, plain: bool, *name):
        """(inputs, forward of them), the outputs cached where they fit."""
        with self.lock:
            inputs, model = self.inputs(*name), self.plain if plain else self.model
            if (plain, *name) not in self.outputs:
                result = self.forward(model, inputs, self.number("call", *name) % 2**31)
                if (
                    name[0] == "check"
                    and name[1] >= 2
                    and not all(t.isfinite().all() for t in result[1] if t.is_floating_point())
                ):
                    result = None  # the reference is not made for such inputs
                if name[0] == "knockout" or result and sum(t.nbytes for t in result[1] + result[2]) > self.keep_bytes:
                    return inputs, result
                self.outputs[(plain, *name)] = result
            return inputs, self.outputs[(plain, *name)]
