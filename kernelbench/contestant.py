"""The untrusted side: the process that runs one candidate on request, and the zygote from which such processes are forked.

A zygote is started by the referee (`judge.py`) with exec, imports torch and triton once, never touches CUDA, knows nothing of any task
and has no secret in its environment. Each evaluation gets a fresh fork of it, confined by `sandbox.py`. The two sides exchange
length-prefixed JSON over a socket, and tensors through memory that the other side opens: a memfd on the CPU, a CUDA allocation of its own
(CUDA IPC) on a GPU. Nothing is ever unpickled. Everything said by a contestant (times, kernel names) is a claim; what the referee believes
is decided in `judge.py`.
"""

import contextlib
import gc
import importlib
import importlib.util
import itertools
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import torch
import triton
import triton.language as tl
from torch._functorch.vmap import lazy_load_decompositions
from torch.profiler import ProfilerActivity, profile
from torch.utils._pytree import tree_map
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernelbench import sandbox, simulate
from kernelbench.build import Weights, Written, derives
from kernelbench.channel import Channel, Closed
from kernelbench.clock import wait_for_number, write_number
from kernelbench.launches import Launches, Library, other_weights, rehearse, watch
from kernelbench.perturb import perturb
from kernelbench.prebuilt import driven, prebuild
from kernelbench.reference import cast_model, seed_torch
from kernelbench.roofline import Flops
from kernelbench.seals import Poison, no_more_hooks, seal
from kernelbench.wire import Opened, Shared, dense, export, flatten, gate, kept, leaves, place, unflatten

# ---------------------------------------------------------------------------------------------------------------------------
# The contestant


def explain(error: BaseException, path: str, limit: int = 3000) -> dict:
    """An exception of the candidate as plain data: its class, its line in the candidate's file, its text (with its causes)."""
    text, line, kernel, seen, depth = [], None, None, error, 0
    while isinstance(seen, BaseException) and (depth := depth + 1) < 10:  # a chain of causes may have no end
        for frame in traceback.extract_tb(seen.__traceback__):
            if frame.filename == path:
                line, kernel = frame.lineno, getattr(sys.modules.get("candidate"), frame.name, None)
                where = f"line {frame.lineno}, in {frame.name}: {frame.line}"
                text += [where] if where not in text else []
        try:
            message = f"{type(seen).__name__}: {seen}".strip()
        except Exception as wrong:  # noqa: BLE001 the candidate's
            message = f"{type(seen).__name__} (its text fails: {type(wrong).__name__})"
        text += [message] if message not in text else []
        seen = seen.__cause__
    text = "\n".join(text)
    if len(text) > limit:
        text = f"{text[: limit // 2]}\n...\n{text[-limit // 2 :]}"
    classes = {c.__name__ for c in type(error).__mro__}
    # without a GPU a kernel's body is run by Python: what a compiler would refuse raises one of these, inside the kernel
    refused = COMPILE_ERRORS | ({"NameError", "AttributeError"} if hasattr(kernel, "rewrite") else set())
    compiled, unsupported = bool(classes & refused), isinstance(error, simulate.Unsupported)
    return {"line": line, "text": text, "compile": compiled, "unsupported": unsupported}


COMPILE_ERRORS = {
    "CompilationError",
    "CompileTimeAssertionFailure",
    "UnsupportedLanguageConstruct",
    "SyntaxError",
    "ImportError",
    "NotTriton",
}


class Contestant:
    """Answers the referee's commands about one candidate."""

    def __init__(self, channel: Channel, config: dict):
        self.channel, self.device, self.path, self.config = channel, config["device"], config["path"], config
        self.opened, self.launches = Opened(self.device), Launches(self.device, self.path)
        self.last, self.left = [], set()  # outputs of the last call, and where they lay
        self.streams, self.marks = [], []
        if self.device == "cuda":
            torch.cuda.init()
            torch.cuda.set_device(0)
            torch.cuda.set_per_process_memory_fraction(0.9)
            torch.zeros(1, device="cuda")  # makes the context, which under Landlock cannot be made
        for backend in (torch.backends.cuda.matmul, torch.backends.cudnn):
            backend.allow_tf32 = config["tf32"]
        if self.device == "cpu":
            gc.disable()  # but for `collecting`
        torch.set_grad_enabled(False)
        self.poison = Poison(self.device)

    def serve(self, changed):
        """changed: names what the candidate has tampered with (see seals.py)."""
        while True:
            message, fds = self.channel.recv()
            if self.device == "cuda":
                kept.clear()
            try:
                reply, fds = getattr(self, "do_" + message["do"])(message, fds)
                if tampered := changed():
                    reply, fds = {"tampered": tampered}, []
            except BaseException as error:  # noqa: BLE001 the candidate's: SystemExit and the like too
                reply, fds = {"error": explain(error, self.path)}, []
            self.channel.send(reply, fds)
            for fd in fds:
                os.close(fd)
            del reply, message
            if self.device == "cpu":  # before there are other inputs, which no destructor may see outside of the meter
                kept.clear()

    def do_load(self, message, fds):
        """Import the candidate's file."""
        spec = importlib.util.spec_from_file_location("candidate", self.path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        spec.loader.exec_module(module)
        self.cls = getattr(module, message["entry"])
        return {}, []

    def do_build(self, message, fds):
        """Construct the model. "name": every parameter and buffer gets the reference's value as soon as it bears its name within the model;
        "order": at once, by the order of the construction before; "seed": by seed alone, perturbed like the reference's."""
        tensors = self.opened.tensors(message["shared"], fds)
        names, how = message["names"], message["how"]
        args = unflatten(message["init"], [t.clone() for t in tensors[len(names) :]])  # the model may keep them
        args, kwargs = (args["args"], args["kwargs"]) if isinstance(args, dict) else (args, {})
        order = self.weights.names(self.plain) if how == "order" else []
        self.model, self.plain, self.weights = None, None, Weights(dict(zip(names, tensors)))
        seed_torch(message["seed"])
        with contextlib.ExitStack() as stack:
            if how == "order":
                stack.enter_context(self.weights.by_order(order))
            elif names:
                stack.enter_context(self.weights.learn())
                stack.enter_context(self.weights.by_name(self.cls))
            with torch.device(self.device):  # plain attributes made of weights lie where the inputs will
                model = self.cls(*args, **kwargs)
        derived = False
        if isinstance(model, torch.nn.Module):
            model = model.to(self.device)
            self.weights.fill(model) if names else perturb(model, message["seed"], message["moved"], message["bold"])
            derived = bool(names) and derives(model, names)
        self.plain = self.model = cast_model(model, self.config["precision"])
        if self.config["compile"]:
            self.model = compiled(self.plain, self.config["compile"])
        if self.device == "cuda":
            torch.cuda.synchronize()
        return {"unmatched": sorted(set(names) - self.weights.used), "derived": derived}, []

    def do_call(self, message, fds):
        """One forward. Its outputs go back, with the launches of Triton kernels and, on the CPU, the simulated time."""
        inputs = unflatten(message["tree"], self.opened.tensors(message["shared"], fds))
        mode = message.get("mode", "count")
        self.launches.begin("record" if mode == "reweigh" else mode, message.get("kernel"), inputs, self.model)
        seed_torch(message["seed"])
        reply, tensors, self.last = {}, [], []
        with contextlib.ExitStack() as stack:
            if mode == "reweigh":
                stack.enter_context(other_weights(self.model))
            if mode in ("record", "copies") and not self.config["any_code"]:
                stack.enter_context(Library(self.launches))  # below the others: its own work is none of theirs
            if not self.config["any_code"]:
                stack.enter_context(self.poison)
            stack.enter_context(watch(self.device, self.launches.around))
            if self.device == "cpu":
                with simulate.Meter(simulate.DEVICES[self.config["simulate"]], self.path) as meter, collecting():
                    trees = [flatten(self.model(*inputs), tensors)]
                    sent = meter.copy(tensors)  # what runs after the meter writes to no output
                rows = [[k["name"], float(k["ms"]), int(k["launches"]), bool(k["own"])] for k in meter.kernels]
                reply |= {"ms": meter.ms, "kernels": rows}
            else:
                trees, sent = [flatten(self.model(*inputs), tensors)], tensors
                torch.cuda.synchronize()
                reply |= {"peak": torch.cuda.max_memory_allocated()}
        self.left = {place(t) for t in tensors}
        if self.device == "cuda":  # kept, so that only a buffer that is used again lies there
            self.last = tensors
        self.launches.end(sent)
        return self._outputs(trees, sent, reply | self.launches.report())

    def do_rest(self, message, fds):
        """Give back what is not needed until the next timing."""
        self.timed, self.last = [], []
        self.opened.close()
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()
        return {}, []

    def do_prepare(self, message, fds):
        """Where the inputs of timed calls will lie; what lies there now is none of them."""
        self.timed = unflatten(message["tree"], self.opened.tensors(message["shared"], fds))
        if len(self.timed) < 2:  # one output overwrites no other
            self.last, self.left = [], set()
        if self.device == "cuda":
            self.gate = self.opened.tensors(gate(message["shared"]), [])[0]
        if self.device == "cuda" and not self.streams:
            self.streams = [torch.cuda.Stream(priority=-p) for p in range(4) for _ in range(32)]  # all that torch has
        return {"forgot": self.launches.forget()}, []

    def do_settle(self, message, fds):
        """Right before the clock starts: the GPU has nothing to do, no destructor is due, the events of a block are there."""
        self.marks += [self._mark() for _ in range(message["calls"] + 1 - len(self.marks))]
        for mark in self.marks:  # the first record makes an event
            mark.record()
        gc.collect()
        gc.disable()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return {}, []

    def do_block(self, message, fds):
        """`calls` forwards over as many fresh inputs, which are there when the referee's gate opens: they are queued behind it, so that the
        GPU need not wait for the CPU. The first reply names the outputs, when all is queued; the GPU says when all is done; the second
        reply holds what the events say, in ms per forward from the end of the one before. Outputs that lie in inputs, in a buffer that is
        used again, or with gaps, are copied within the time of their forward."""
        calls = message.get("tree", self.timed)[: message["calls"]]
        if "tree" in message:  # other numbers among the inputs
            calls = unflatten(message["tree"], self.opened.tensors(message["shared"], fds))
        if self.device == "cuda":
            wait_for_number(self.gate[:1], message["gate"])
            opened = torch.cuda.Event()
            opened.record()
            for stream in self.streams:  # nor may work on another stream begin before that
                stream.wait_event(opened)
        trees, tensors = [], []
        taken = {place(t) for t in leaves(calls)} | self.left
        marks = self.marks[: len(calls) + 1]
        marks[0].record()
        for i, given in enumerate(calls):
            seed_torch(message["seed"] + i)
            first = len(tensors)
            trees.append(flatten(self.model(*given), tensors))
            mine = [place(t) for t in tensors[first:]]
            for k, there in enumerate(mine, first):
                if there in taken or not dense(tensors[k]):
                    tensors[k] = tensors[k].clone(memory_format=torch.contiguous_format)
            taken.update(mine)
            marks[i + 1].record()
        if self.device == "cuda":
            write_number(self.gate[1:], message["gate"])
        reply, out = self._outputs(trees, tensors, {})
        self.channel.send(reply, out)
        for fd in out:
            os.close(fd)
        if self.device == "cuda":
            torch.cuda.synchronize()
        return {"ms": [a.elapsed_time(b) for a, b in itertools.pairwise(marks)]}, []

    def _mark(self):
        return torch.cuda.Event(enable_timing=True) if self.device == "cuda" else Mark()

    def do_flops(self, message, fds):
        """FLOPs of one forward."""
        inputs = unflatten(message["tree"], self.opened.tensors(message["shared"], fds))
        with Flops() as flops:
            self.plain(*inputs)
        return {"flops": flops.total}, []

    def do_warm(self, message, fds):
        """The profiler's first start, and torch's kernels for the tests of launches, which are loaded when they are first used."""
        if message["launches"]:
            rehearse(self.device)
        with profile(activities=[ProfilerActivity.CUDA]):
            torch.cuda.synchronize()
        return {}, []

    def do_profile(self, message, fds):
        """torch.profiler's CUDA rows over the calls: name, ms per call, launches per call."""
        inputs = unflatten(message["tree"], self.opened.tensors(message["shared"], fds))
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as prof:
            for given in inputs:
                flatten(self.model(*given), [])  # as they are timed: a negation that was put off is work
            torch.cuda.synchronize()
        rows = {}
        for event in prof.events():
            if event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation:
                row = rows.setdefault(event.name, [0.0, 0])
                row[0] += event.time_range.elapsed_us() / 1e3 / len(inputs)
                row[1] += 1 / len(inputs)
        return {"rows": [[name, ms, n] for name, (ms, n) in rows.items()]}, []

    def _outputs(self, trees: list, tensors: list, reply: dict):
        if self.device == "cuda":
            if any(t.device.type != "cuda" for t in tensors):
                raise TypeError("the output is on the CPU; it must stay on the GPU")
            return reply | {"tree": trees, "shared": export(tensors)}, []
        shared = Shared(tensors, "cpu")
        return reply | {"tree": trees, "shared": shared.spec}, shared.fds


@contextlib.contextmanager
def collecting():
    """Garbage is collected here; without a GPU nowhere else: what its destructors do takes time like the rest."""
    gc.enable()
    try:
        yield
        gc.collect(0)
    finally:
        gc.disable()


def compiled(model: torch.nn.Module, mode: str):
    """torch.compile'd for a baseline: the first call compiles, and records the CUDA graphs of max-autotune, whose outputs lie in a buffer
    that is used again and are copied. Random numbers are eager's own, so that dropout can be compared."""
    config = importlib.import_module("torch._inductor.config")
    config.compile_threads, config.fallback_random = 1, True
    run, state = torch.compile(model, mode=mode), {"fresh": True}

    def forward(*inputs):
        if state["fresh"]:
            with torch.random.fork_rng():
                for _ in range(3):
                    run(*tree_map(_clone, inputs))
            state["fresh"] = False
        outputs = run(*inputs)
        return tree_map(_clone, outputs) if mode == "max-autotune" else outputs

    return forward


def _clone(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


class Mark:
    """A CUDA event's stand-in on a machine without a GPU, where only the tests of the clock run blocks."""

    def record(self):
        self.time = time.perf_counter()

    def elapsed_time(self, end: "Mark") -> float:
        return 1e3 * (end.time - self.time)


# ---------------------------------------------------------------------------------------------------------------------------
# The zygote


def zygote(fd: int, device: str):
    """Fork a confined contestant for each {"job", "config"} that arrives (with its socket), report each death as {"exit": job, ...}. After
    {"alone": job} all others stand still, and forks wait, until {"alone": None}."""
    torch.set_num_threads(1)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sandbox.prepare(root, device)
    if device == "cpu":
        simulate.install()
    _rehearse(device)
    sys.addaudithook(no_more_hooks)
    gc.collect()
    gc.freeze()
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != root]
    control, children = Channel(socket.socket(fileno=fd)), {}
    wake_r, wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_w)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    control.send({"ready": os.getpid()})
    alone, later = None, []
    while True:
        now = later and alone is None
        ready, _, _ = select.select([control.sock, wake_r], [], [], 0 if now else None)
        if wake_r in ready:
            os.read(wake_r, 4096)
        while children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid in children:
                job = children.pop(pid)
                sandbox.sweep(set(children))
                control.send({"exit": job, "code": os.waitstatus_to_exitcode(status)})
        if control.sock not in ready and not now:
            continue
        try:
            message, fds = later.pop(0) if now else control.recv()
        except Closed:
            sandbox.sweep(set())
            os._exit(0)
        if "alone" in message:
            alone = message["alone"]
            for pid, job in children.items():
                os.kill(pid, signal.SIGSTOP if alone not in (None, job) else signal.SIGCONT)
            continue
        if "kill" in message:
            for pid, job in children.items():
                if job == message["kill"]:
                    os.kill(pid, signal.SIGKILL)  # the first process of its PID namespace: all descendants die with it
            continue
        if alone is not None:
            later.append((message, fds))
            continue
        off = sandbox.isolate()
        pid = os.fork()
        if pid:
            children[pid] = message["job"]
            os.close(fds[0])
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        config = message["config"]
        channel = Channel(socket.socket(fileno=fds[0]))
        try:
            contestant = _confined(channel, config, off)
            # sealed here, after CUDA's start, which sets some of it; Dynamo changes much, and is ours
            contestant.serve(
                seal(Contestant, Weights, Written, Library, sys.modules[__name__])
                if not config["compile"]
                else lambda: None
            )
        except Closed:
            os._exit(0)
        finally:
            os._exit(1)


def _confined(channel: Channel, config: dict, off: str | None) -> Contestant:
    """A contestant behind all layers of its sandbox, of which the referee is told; or of what it lacks."""
    try:
        layers = sandbox.confine(config["folder"], {channel.sock.fileno()}, config["device"], off)
        contestant = Contestant(channel, config)
        layers = sandbox.lock(config["folder"], config["device"], layers)
    except Exception as error:
        channel.send({"failed": f"{type(error).__name__}: {error}"[:1000]})
        raise
    channel.send({"sandbox": layers})
    return contestant


def _rehearse(device: str):
    """Before serving, everything that every child would import or initialise again: on the CPU a whole evaluation, for a GPU a compilation,
    Triton's C modules (prebuilt.py), and what the profiler imports on its first start (4 s)."""

    @triton.jit
    def add_one(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        x = tl.sigmoid(x) + tl.sum(tl.exp(x)) + tl.max(x, axis=0)
        tl.store(x_ptr + i, x + 1, mask=i < n)

    if device == "cuda":
        driver = importlib.import_module("triton.backends.nvidia.driver")
        types = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
            os.environ["TRITON_CACHE_DIR"] = folder
            built = pool.submit(prebuild, driver) if driven() else None  # gcc works while this imports
            importlib.import_module("torch._inductor")
            triton.compile(ASTSource(add_one, types, {"BLOCK": 64}), target=GPUTarget("cuda", 90, 32))
            if built:
                built.result()
        lazy_load_decompositions()
        return

    class Rehearsal(torch.nn.Module):
        def forward(self, x):
            add_one[(2,)](x, x.numel(), BLOCK=64)
            return torch.softmax(torch.relu(x) * 2, dim=0)

    lazy_load_decompositions()
    for _ in range(2):
        with torch.no_grad(), simulate.Meter(simulate.DEVICES["H200"], __file__):
            Rehearsal()(torch.randn(100))
