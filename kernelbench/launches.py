"""The Triton launches of a candidate's forward: counted by kernel, and put to the test whether the output needs what they write.

Three tests, each one forward on inputs of its own. "noise": what one kernel would have changed becomes random; where the output stays right
the kernel is launched for show. "swap": what every kernel of the candidate wrote becomes what it wrote on other inputs, which looks like
any other result; where the output stays right none of them matters. "record" and "copies": a kernel that only repeats what another tensor
of the forward holds, up to the tolerance, is no work of its own, nor are kernels whose source the forward returns in the end. Launches
that a CUDA graph records are tampered with as they are recorded. Runs beside the candidate, so what it finds is a claim. Of inputs and weights above
LARGE only a fingerprint is taken, since they are hardly ever changed; other large tensors are copied to the host's memory, which is slow, where the GPU has no room.
"""

import contextlib
import math

import torch
from torch.utils._python_dispatch import _disable_current_modes

from kernelbench import simulate
from kernelbench.compare import CHUNK, TOLERANCE, Fingerprint
from kernelbench.modes import Mode
from kernelbench.wire import dense, leaves, place

LARGE = {"cpu": math.inf, "cuda": 1 << 30}  # bytes
PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
LIBRARY = 1 << 30  # bytes of a forward's results of libraries that are remembered


class Launches:
    """Counts launches while `watch` is active. path: the candidate's file; whose a launch is says where the kernel's code lies."""

    def __init__(self, device: str, path: str):
        self.device, self.path = device, path
        self.codes: dict[str, list] = {}  # name -> the code objects that bear it
        self.written: dict[tuple[str, int], list] = {}  # (kernel, number of the launch) -> tensors as it left them
        self.sizes: set[int] = set()  # numbers of elements of the outputs
        self.begin("count", None, [], None)

    def begin(self, mode: str, kernel: str | None, inputs, model):
        self.mode, self.kernel, self.counts = mode, kernel, {}
        self.trail: list[
            tuple[str, int, bool, bool]
        ] = []  # own launches: kernel, bytes, whether a copy, and of a library's results
        self.library: list[torch.Tensor] = []  # all of that
        self.busy = False  # what runs now is ours
        self.made: set[int] = set()  # storages that own kernels wrote to
        self.worked: dict[int, tuple] = {}  # storages that own kernels wrote to which did not only copy
        self.others: list[tuple[torch.Tensor, int]] = []  # what they took from others, and the launches before that
        if mode == "record":
            self.written = {}
        self.differs = False  # what was put in place of something differed from it
        # what a forward starts from, with the version that tells whether a library wrote there since
        self.given = {place(t): (t, _version(t)) for t in [*leaves(inputs), *held(model)]}

    def around(self, launch, run):
        """Every Triton launch of a forward passes here."""
        own = simulate.is_own(launch.own_file, self.path)
        codes = self.codes.setdefault(launch.name, [])
        if launch.code not in codes:
            codes.append(launch.code)
        place = codes.index(launch.code)
        kernel = f"{launch.name} ({place + 1})" if place else launch.name
        number = self.counts.get((kernel, own), 0)
        self.counts[kernel, own] = number + 1
        self.busy, busy = True, self.busy
        try:
            return self._launched(kernel, own, number, launch, run)
        finally:
            self.busy = busy

    def _launched(self, kernel: str, own: bool, number: int, launch, run):
        if not own or self.mode == "count" or (self.mode in ("noise", "huge") and kernel != self.kernel):
            return run()
        capturing = _capturing(self.device)
        with torch.no_grad(), _disable_current_modes():  # each of them costs every operator some 20 us
            before = [] if capturing else [self._before(t) for t in launch.tensors]
        run()
        with torch.no_grad(), _disable_current_modes():
            before = [old() if isinstance(old, Fingerprint) else old for old in before]
            if capturing:
                self._captured(kernel, launch.tensors)
            else:
                self._put_to_the_test(kernel, number, launch.tensors, before)
        return None

    def _before(self, t: torch.Tensor):
        """What t holds now, in whatever form."""
        large = t.nbytes > LARGE[_home(t).type] and dense(t) and self._is_given(t)
        return Fingerprint(t) if large else _kept(t)

    def forget(self) -> bool:
        """Leaves nothing large in memory; whether there was such."""
        large = any(t is not None and t.nbytes > LARGE[_home(t).type] for left in self.written.values() for t in left)
        self.written = {} if large else self.written
        return large

    def _put_to_the_test(self, kernel: str, number: int, tensors: list, before: list):
        changed = [not all(_equal(*parts).all() for parts in _parts(t, old)) for t, old in zip(tensors, before)]
        if self.mode in ("noise", "huge"):
            for t, old in [pair for pair, c in zip(zip(tensors, before), changed) if c]:
                for now, was in _parts(*_unique(t, old)):
                    now.copy_(torch.where(_near(now, was), was, _noise(now, self.mode == "huge")))
        elif self.mode == "swap":
            for t, old, other, c in zip(tensors, before, self.written.get((kernel, number), []), changed):
                other = old if other is None else other
                if (c or other is not old) and other.shape == t.shape:
                    self.differs |= not all(_near(*parts).all() for parts in _parts(t, other))
                    _overwrite(t, other)
        else:
            if self.mode == "record":
                self.written[kernel, number] = [_kept(t) if c else None for t, c in zip(tensors, changed)]
            self._follow(kernel, tensors, before, changed)

    def _follow(self, kernel: str, tensors: list, before: list, changed: list[bool]):
        """Whether the launch only repeated what another tensor held before it: at least half of the bytes that it wrote; or whole inputs and
        weights as they are, which anybody could have read themselves."""
        sources = [
            old for t, old in zip(tensors, before) if not self._is_given(t) and not self._is_given(t, self.worked)
        ]
        outputs = [(t, old) for t, old, c in zip(tensors, before, changed) if c]
        for t, s in zip(tensors, before):
            few = len(self.others) < (4096 if s.nbytes <= LARGE[self.device] else 1)
            if few and not self._is_given(t) and s.numel() in self.sizes and place(t) not in self.made:
                self.others.append((s, len(self.trail)))
        self.made |= {place(t) for t, _ in outputs}
        taken = [self._taken(t, old) for t, old in outputs]
        repeats = [
            took or any(_repeats(t, old, s) for s in _readings(sources, t) if s is not old)
            for (t, old), took in zip(outputs, taken)
        ]
        total = sum(t.nbytes for t, _ in outputs)
        took, copy = (
            2 * sum(t.nbytes for (t, _), c in zip(outputs, which) if c) >= total > 0 for which in (taken, repeats)
        )
        given = [old for t, old in zip(tensors, before) if self._is_given(t)]
        copy |= bool(outputs) and all(r or any(_passed_on(t, s) for s in given) for (t, _), r in zip(outputs, repeats))
        self.trail.append((kernel, total, copy, took))
        if not copy:
            self.worked |= {place(t): (t, _version(t)) for t, _ in outputs}

    def saw(self, t: torch.Tensor):
        """What a library computed is remembered as it was; the latest, where it is much."""
        if self.busy or _capturing(self.device) or t.nbytes > LIBRARY or t.untyped_storage().nbytes() < t.nbytes:
            return
        self.library.append(t.clone())
        while sum(s.nbytes for s in self.library) > LIBRARY:
            self.library.pop(0)
        if t.numel() in self.sizes:
            self.others.append((self.library[-1], len(self.trail)))

    def _taken(self, t: torch.Tensor, old: torch.Tensor) -> bool:
        """Whether nearly all that was written to t are results of a library from this forward, one or several."""
        if not self.library or t.nbytes > LARGE[_home(t).type]:
            return any(s.numel() == t.numel() and _repeats(t, old, s) for s in self.library)
        changed = ~_equal(t, old).reshape(-1)
        number = int(changed.sum())
        whole = [s for s in self.library if s.numel() in (t.numel(), number) and not _plain_number(s)]
        return any(_repeats(t, old, s) for s in whole) or _woven(t, changed, self.library)

    def _is_given(self, t: torch.Tensor, by: dict | None = None) -> bool:
        """Whether t is an input or a weight into which no library has written since the forward began (since an own kernel did its work
        there: by=self.worked; passing on one's own result is no copy)."""
        owner, version = (self.given if by is None else by).get(place(t), (None, None))
        return version is not None and _version(owner) == version

    def _captured(self, kernel: str, tensors: list[torch.Tensor]):
        """A launch that a CUDA graph records: nothing can be compared while it does, so what the kernel is known to write is replaced
        by what it wrote when it was recorded last, or by one number, whenever the graph is replayed."""
        known = next((left for (name, _), left in reversed(self.written.items()) if name == kernel), [])
        for t, other in zip(tensors, known):
            if other is None:
                continue
            if self.mode == "swap" and other.shape == t.shape:
                self.differs = True
                _overwrite(t, other)
            elif self.mode in ("swap", "noise", "huge"):
                self.differs = True
                _unique(t)[0].fill_(-777 if t.dtype.is_floating_point else 1)

    def end(self, outputs: list[torch.Tensor]):
        """After the forward: where all its outputs were there before some launch, that launch and the later ones were for nothing."""
        there = [next((at for s, at in self.others if _alike(o.reshape(-1), s.reshape(-1))), None) for o in outputs]
        if outputs and None not in there:
            self.trail = [
                (*launch[:2], launch[2] or at >= max(there), launch[3]) for at, launch in enumerate(self.trail)
            ]
        self.sizes, self.others, self.library = {o.numel() for o in outputs}, [], []

    def report(self) -> dict:
        counts = [[kernel, own, n] for (kernel, own), n in self.counts.items()]
        copies, took = self._mostly(2), self._mostly(3)
        return {"launches": counts, "copies": copies, "took": took, "differs": self.differs}

    def _mostly(self, which: int) -> list[str]:
        """The kernels that wrote more than half of their bytes in such launches, or were launched in no others."""
        found = []
        for kernel in {launch[0] for launch in self.trail}:
            mine = [launch for launch in self.trail if launch[0] == kernel]
            such = [launch for launch in mine if launch[which]]
            if such == mine or 2 * sum(launch[1] for launch in such) > sum(launch[1] for launch in mine):
                found.append(kernel)
        return sorted(found)


class Library(Mode):
    """While active, `launches` sees what the operators of a library compute, as that may be all that a kernel writes again: whichever way it
    got there. Memory that is only filled or viewed is nothing computed."""

    def __init__(self, launches: Launches):
        super().__init__()
        self.launches = launches

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given = {place(t) for t in _tensors([*args, *(kwargs or {}).values()]) if type(t) in PLAIN}
        if given and func._schema.name.partition("::")[2].rstrip("_") not in FILLS:
            for t in leaves([out]):
                if t.numel() and t.layout == torch.strided and (func._schema.is_mutable or place(t) not in given):
                    self.launches.saw(t)
        return out


FILLS = {"zero", "fill", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full"}
FILLS |= {"new_empty", "new_empty_strided", "detach", "alias", "lift_fresh", "uniform", "random", "normal"}


def _woven(t: torch.Tensor, changed: torch.Tensor, parts: list[torch.Tensor]) -> bool:
    """Whether at least nine tenths of what was `changed` in t are whole `parts`, each in one piece or in rows at equal distances."""
    flat, found = t.reshape(-1), torch.zeros_like(changed)
    rows = {math.prod(t.shape[i:]) for i in range(1, t.dim() + 1)}
    for s in parts:
        n, s = s.numel(), s.reshape(-1)
        if not 64 <= n < len(flat) or s.dtype != flat.dtype or _plain_number(s):
            continue
        places = (flat[: len(flat) - n + 1] == s[0]).nonzero()[:8, 0].tolist()
        spots = [(flat[at : at + n], found[at : at + n]) for at in places]
        if (every := len(flat) // n) <= 16 and len(flat) == every * n:
            views = [(flat.view(-1, every, row), found.view(-1, every, row)) for row in rows if n % row == 0]
            spots += [(values[:, k], marks[:, k]) for values, marks in views for k in range(every)]
        for values, marks in spots:
            if _alike(values.reshape(-1), s):
                marks.fill_(True)
    return bool(10 * (found & changed).sum() >= 9 * changed.sum() > 0)


def _plain_number(s: torch.Tensor) -> bool:
    """Whether s is all zeros or all ones, which anybody may write."""
    return bool((s == 0).all() or (s == 1).all())


def rehearse(device: str):
    """Uses all that the tests use of torch once, on a few values: on a GPU it loads each kernel when it is first called, in 10 ms or more."""
    a, b = torch.rand(8, device=device), torch.rand(8, device=device)
    near, same = _near(a, b), _equal(a, b).all()
    a.copy_(torch.where(near, b, _noise(a)))
    _repeats(a, b, b), _alike(a, b), _kept(a), same.item()


def _version(t: torch.Tensor) -> int | None:
    """Counts what torch writes to t; None where nobody counts."""
    return None if t.is_inference() else t._version


def _plain(t: torch.Tensor) -> torch.Tensor:
    """t without the methods of a class of the candidate's, which would run whenever they are asked."""
    if type(t) in PLAIN:
        return t
    with torch._C.DisableTorchFunctionSubclass():
        return torch._C.TensorBase.detach(t)


_names = vars(torch.nn.Module)["__dict__"].__get__  # whatever a class makes of the name


def held(model) -> list[torch.Tensor]:
    """A model's parameters and buffers, of all its modules, without calling anything of its own."""
    found, todo, seen = [], [model], set()
    while todo:
        module = todo.pop()
        if not issubclass(type(module), torch.nn.Module) or id(module) in seen:  # whatever it says that it is
            continue
        seen.add(id(module))
        parts = [dict.get(_names(module), name) for name in ("_parameters", "_buffers", "_modules")]
        parts = [list(dict.values(part)) for part in parts if issubclass(type(part), dict)]
        todo += [m for part in parts for m in part]
        found += [_plain(t) for part in parts for t in part if issubclass(type(t), torch.Tensor)]
    return found


@contextlib.contextmanager
def other_weights(model):
    """While inside, the model's parameters and buffers hold other numbers: floats are moved, integers put in another order."""
    tensors = held(model)
    with torch.no_grad():
        saved = [t.clone() for t in tensors]
        for t in tensors:
            if t.is_floating_point():
                t.add_(
                    torch.randn(t.shape, device=_home(t)).to(t.dtype)
                    * (t.float().std(unbiased=False) + 0.1).to(t.dtype)
                )
            else:
                t.copy_(t.flatten().flip(0).view(t.shape))
        try:
            yield
        finally:
            for t, old in zip(tensors, saved):
                t.copy_(old)


def _unique(t: torch.Tensor, *others: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """t without the repetitions of an expanded tensor, and the others at the same places."""
    tensors = (t, *others)
    for axis, (size, step) in enumerate(zip(t.shape, t.stride())):
        if size > 1 and step == 0:
            tensors = tuple(x.narrow(axis, 0, 1) for x in tensors)
    return tensors


def _overwrite(t: torch.Tensor, other: torch.Tensor):
    target, other = _unique(t, other)
    target.copy_(other)


def _readings(sources: list[torch.Tensor], t: torch.Tensor) -> list[torch.Tensor]:
    """`sources`, and those of integers also with their bits read as t's numbers."""
    wide = t.element_size() if t.dtype.is_floating_point else 0
    bits = [
        s.contiguous().reshape(-1).view(t.dtype)
        for s in sources
        if wide and not s.dtype.is_floating_point and not s.is_complex() and s.numel() and s.nbytes == t.nbytes
    ]
    return [*sources, *bits]


def _tensors(args) -> list[torch.Tensor]:
    """The tensors among a launch's arguments, those of descriptors and in tuples too."""
    found = []
    for a in args:
        a = getattr(a, "base", a)
        found += _tensors(a) if isinstance(a, (list, tuple)) else [a] if isinstance(a, torch.Tensor) else []
    return found


def _capturing(device: str) -> bool:
    return device == "cuda" and torch.cuda.is_current_stream_capturing()


def _home(t: torch.Tensor) -> torch.device:
    """Where t lies, whatever its `device` says where a GPU is simulated."""
    return t.untyped_storage().device


def _kept(t: torch.Tensor) -> torch.Tensor:
    """What t holds now; of a large tensor one value for all, where it is full of it, as poisoned memory is, or a copy wherever there is room."""
    if t.nbytes <= LARGE[_home(t).type]:
        return t.clone()
    first = t[(0,) * t.dim()].clone().expand_as(t)
    if all(_equal(*parts).all() for parts in _parts(t, first)):
        return first
    return t.clone() if _room() > 3 * t.nbytes else t.to("cpu", copy=True)


def _room() -> float:
    """Bytes of the GPU that are free, to torch or to all."""
    if not torch.cuda.is_initialized():
        return math.inf
    return torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()


def _parts(t: torch.Tensor, *others: torch.Tensor):
    """Views of t, piece by piece, with what the others hold at the same places, on t's device; of t as a whole where it has gaps."""
    flat = []
    for x in (t, *others):
        if x.stride() == t.stride() and dense(t):
            flat.append(x.as_strided((t.numel(),), (1,)).split(CHUNK[_home(t).type]))
        elif not any(x.stride()) and x.numel() and dense(t):  # one value
            flat.append(x.as_strided((t.numel(),), (0,)).split(CHUNK[_home(t).type]))
    for parts in zip(*flat) if len(flat) == 1 + len(others) else [(t, *others)]:
        yield tuple(x.to(_home(t)) for x in parts)


def _equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | ((a != a) & (b != b))


def _near(t: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """Where a launch changed nothing that would show."""
    same = _equal(t, old)
    if not t.dtype.is_floating_point or same.all():
        return same
    scale = t[~same].double().square().mean().sqrt().to(t.dtype)
    return same | ((t - old).abs() <= 1e-5 * (t.abs() + scale))


def _repeats(t: torch.Tensor, old: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether all that was written to t stands at the same places of `source`, or in the same order where it has no more than that."""
    if t.nbytes > LARGE[_home(t).type]:
        if t.numel() != source.numel() or t.dtype != source.dtype:
            return False
        source = source.reshape(-1).view_as(t) if source.shape != t.shape or source.stride() != t.stride() else source
        return all((_equal(now, there) | _equal(now, was)).all() for now, was, there in _parts(t, old, source))
    changed = ~_equal(t, old).reshape(-1)
    if t.numel() == source.numel():
        source = source.reshape(-1)[changed]
    return _alike(t.reshape(-1)[changed], source.reshape(-1))


def _passed_on(t: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether t is the whole of `source`, bit by bit and in the same order in memory: no other layout, which may be work."""
    same = t.numel() == source.numel() and t.dtype == source.dtype and t.is_contiguous() and source.is_contiguous()
    return same and t.numel() > 1 and all(_equal(*parts).all() for parts in _parts(t.reshape(-1), source.reshape(-1)))


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether flat a would pass for b, whatever its dtype."""
    if a.numel() != b.numel():
        return False
    for x, y in zip(a.split(CHUNK[_home(a).type]), b.split(CHUNK[_home(a).type])):
        y = y.to(_home(x))
        good = _equal(x, y)
        if y.is_floating_point() and not good.all():
            scale = y.abs().nan_to_num(0, 0, 0)
            rms = scale.double().square().mean().sqrt().to(scale.dtype)  # never less than what the referee lets pass
            good |= (x - y).abs() <= 2 * TOLERANCE.get(y.dtype, 1e-4) * (scale + rms)
        if not good.all():
            return False
    return True


def _noise(t: torch.Tensor, huge: bool = False) -> torch.Tensor:
    """Random values; huge: of float tensors, such that no stable formula cancels them (a maximum that is only subtracted)."""
    if t.dtype.is_floating_point:
        if huge:
            top = 0.1 * torch.finfo(t.dtype).max ** 0.8
            return (torch.randn(t.shape, device=_home(t)).sign() * top).to(t.dtype)
        # finite, of either sign, from tame to very large: nothing cancels it by accident
        top = min(6.0, math.log10(torch.finfo(t.dtype).max) - 0.5)
        size = 10 ** torch.empty(t.shape, device=_home(t)).uniform_(1, top)
        return (torch.randn(t.shape, device=_home(t)).sign() * size).to(t.dtype)
    if t.dtype == torch.bool:
        return ~t
    return torch.randint(0, 100, t.shape, device=_home(t)).to(t.dtype)


class watch:
    """While active, every Triton launch (any syntax) goes through around(launch, run)."""

    def __init__(self, device: str, around):
        self.device, self.around = device, around

    def __enter__(self):
        if self.device == "cpu":
            simulate.around = self.around
            return
        from triton.backends.nvidia.driver import CudaLauncher

        self.launcher, self.original, around = CudaLauncher, (CudaLauncher.__init__, CudaLauncher.__call__), self.around

        def init(launcher, src, metadata):
            self.original[0](launcher, src, metadata)
            code = getattr(getattr(getattr(src, "fn", None), "fn", None), "__code__", None)
            launcher.drkernel = (metadata.name, code)

        def call(launcher, *args):
            name, code = getattr(launcher, "drkernel", ("?", None))
            return around(
                simulate.Launch(name, code.co_filename if code else "", _tensors(args), code),
                lambda: self.original[1](launcher, *args),
            )

        CudaLauncher.__init__, CudaLauncher.__call__ = init, call

    def __exit__(self, *_):
        if self.device == "cpu":
            simulate.around = None
        else:
            self.launcher.__init__, self.launcher.__call__ = self.original
