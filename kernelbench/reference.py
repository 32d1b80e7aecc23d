"""What the referee knows of a task and a candidate never sees: the model, its weights, the inputs of every draw, the right outputs."""

import copy
import hashlib
import hmac
import json
import random
import threading
import zlib

import torch

from kernelbench import Task
from kernelbench.compare import mismatch
from kernelbench.process import Fault
from kernelbench.wire import flatten, leaves

# Correctness draws from other distributions than the task's own: float inputs of either sign and another scale, or at least another scale;
# values near 1 and -1, whose products neither vanish nor grow.
MOVES = {
    "mirror": lambda value: 2 - 3 * value,
    "stretch": lambda value: 3 * value + 0.5,
    "unit": lambda value: (torch.rand_like(value) - 0.5).sign() * (1 + 0.01 * torch.randn_like(value)),
}


def moves(draw: int) -> tuple[str, ...]:
    """What may be done to the inputs of correctness draw 2, 3, ..: the first that the task bears."""
    return ("unit",) if draw % 2 else ("mirror", "stretch")


HALF = (torch.float16, torch.bfloat16)


def _mean(t: torch.Tensor):
    """A number of t's kind that is its finite values' mean."""
    values = t[t.isfinite()] if t.is_floating_point() else t
    mean = values.double().mean().item() if values.numel() and not t.is_complex() else 0.0
    return mean if t.is_floating_point() or t.is_complex() else round(mean)


def _widened(value):
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in HALF else value
    return type(value)(_widened(v) for v in value) if isinstance(value, (list, tuple)) else value


def perturb(module: torch.nn.Module, seed: int) -> None:
    """Moves every float parameter and buffer that is all ones or all zeros off that value (by up to 0.5 and 0.25), so that a candidate
    which ignores it is wrong. By seed, value, number of elements and occurrence alone: the same under other names, in another order, with other shapes."""
    seen = {}
    for slot in [*module.parameters(), *module.buffers()]:
        if not slot.is_floating_point() or not slot.numel() or not ((slot == 0).all() or (slot == 1).all()):
            continue
        one = bool((slot == 1).all())
        key = (seed, one, slot.numel())
        seen[key] = seen.get(key, 0) + 1
        generator = torch.Generator().manual_seed(zlib.crc32(repr((key, seen[key])).encode()))
        noise = torch.rand(slot.numel(), generator=generator) * 0.5 - (0.0 if one else 0.25)
        slot.data += noise.view(slot.shape).to(slot.device, slot.dtype)


class Reference:
    """A task's model with its weights, its inputs by name of the draw, its expected outputs; filled in lazily, shared by a task's candidates."""

    generating = threading.Lock()  # torch's default generators are global

    def __init__(self, task: Task, device: str, key: bytes, keep_bytes: int = 1 << 30):
        self.task, self.device, self.key, self.keep_bytes = task, device, key, keep_bytes
        self.lock, self.timing_lock, self.timing = threading.Lock(), threading.Lock(), None
        self.outputs, self.moves, self.plan, self.passes = {}, {}, None, None
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
            with torch.device(device):  # as the candidate's is built
                self.model = self.names["Model"](*copy.deepcopy(self.args), **self.kwargs).to(device)
            perturb(self.model, self.seed)
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

    def inputs(self, *name, how: str | None = None):
        """Fresh inputs of the draw `name`, the float ones among them moved by MOVES[how]. Fault when the task cannot make them."""
        with self.generating:
            self._seed("inputs", *name)
            try:
                with torch.device(self.device):
                    given = list(self.names["get_inputs"]())
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # noqa: BLE001 the task's own code
                raise Fault(
                    f"get_inputs of the task {self.task.name} fails: {type(error).__name__}: {error}"
                ) from error
            return [self._move(v, how) for v in given]

    def _move(self, value, how):
        if isinstance(value, torch.Tensor):
            value = value.detach().to(self.device)
            if not how or not value.is_floating_point() or ((value == 0) | (value == 1)).all():  # flags
                return value
            ordered = value.dim() == 1 and len(value) > 1 and (value.diff() >= 0).all()
            return MOVES["stretch" if ordered else how](value)
        return type(value)(self._move(v, how) for v in value) if isinstance(value, (list, tuple)) else value

    def forward(self, inputs, seed: int, model: torch.nn.Module | None = None):
        """(tree, output tensors, the inputs' tensors after the call): what a right candidate must give. Fault when the task fails."""
        tensors, after = [], []
        mine = copy.deepcopy(inputs)
        with torch.no_grad(), self.generating:
            torch.manual_seed(seed)
            try:
                tree = flatten((model or self.model)(*mine), tensors)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # noqa: BLE001 the task's own code
                raise Fault(f"the task {self.task.name} fails: {type(error).__name__}: {error}") from error
        flatten(mine, after)
        return tree, [t.clone() for t in tensors], after

    def doubts(self, inputs, seed: int, outputs: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """How far the half-precision `outputs` are from those of the same model in fp32: a right candidate may lie on either side. None
        for other outputs, or where the model does not work in fp32."""
        if not any(t.dtype in HALF for t in outputs):
            return [None] * len(outputs)
        with self.generating:
            model = copy.deepcopy(self.model).float()
        try:
            exact = self.forward(_widened(inputs), seed, model)[1]
        except Fault:
            return [None] * len(outputs)
        if [t.shape for t in exact] != [t.shape for t in outputs]:
            return [None] * len(outputs)
        pairs = zip(outputs, exact)
        return [(a.float() - b.float()).abs().nan_to_num(0) if a.dtype in HALF else None for a, b in pairs]

    def control(self, draws: int, tolerance: float | None = None) -> str | None:
        """What passes for the right output in all of the correctness draws without any work: zeros, the mean, an input, the output on other
        inputs. None for a task that tells right from wrong."""
        stale = self.expected("reference", 0)[1][1]
        left = None
        for draw in range(draws):
            inputs, expected = self.expected("check", draw)
            if expected is None:
                continue
            controls = {
                "zeros": [torch.zeros_like(t) for t in expected[1]],
                "their mean": [torch.full_like(t, _mean(t)) for t in expected[1]],
                "the output for other inputs": stale,
            }
            if all(t.numel() <= 1 for t in expected[1]):
                del controls["their mean"]  # the answer itself
            controls |= {f"input {i}": [t] for i, t in enumerate(leaves(inputs))}
            passed = {
                name
                for name, outputs in controls.items()
                if len(outputs) == len(expected[1])
                and not any(mismatch(o, e, tolerance) for o, e in zip(outputs, expected[1]))
            }
            left = passed if left is None else left & passed
        return next((name for name in controls if name in left), None) if left else None

    def expected(self, *name):
        """(inputs, forward of them), the outputs cached where they fit. Draws named ("check", 2), ("check", 3).. have moved inputs where
        the reference stays finite on them; the second is None where no move leaves it so."""
        with self.lock:
            key, seed = name, self.number("call", *name) % 2**31
            draw, moved = name[:2], name[0] == "check" and name[1] >= 2
            if moved and draw not in self.moves:
                self.moves[draw] = next(
                    (how for how in moves(name[1]) if self._bears(self.inputs(*name, how=how), seed)), None
                )
            inputs = self.inputs(*name, how=self.moves.get(draw))
            if moved and self.moves[draw] is None:
                return inputs, None
            if key in self.outputs:
                return inputs, self.outputs[key]
            result = self.forward(inputs, seed)
            if name[0] != "knockout" and sum(t.nbytes for t in result[1] + result[2]) <= self.keep_bytes:
                self.outputs[key] = result
            return inputs, result

    def _bears(self, inputs, seed: int) -> bool:
        """Whether the task is made for such inputs."""
        try:
            outputs = self.forward(inputs, seed)[1]
        except Fault:
            return False
        return all(t.isfinite().all() for t in outputs if t.is_floating_point())
