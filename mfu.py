"""How fast and how large training is: forward, backward, optimizer and refresh on random weights and packed rows. For bench.py.

    python bench.py train --model qwen-8b --row 4096 --tokens 16384
    torchrun --nproc-per-node 2 bench.py train --model qwen-14b --row 16384
    python bench.py step --model qwen-14b --prompts 2 --samples 8

`train` is an update's parts on rows of given lengths, `step` a whole RL step of train.py with random verdicts in place of a gym. Model FLOP utilisation counts 6 N FLOP per token (N: all parameters; neither attention nor what is computed twice) against --peak. Idle
gaps are times in which no kernel, copy or memset ran, in a profiler's trace of two micro-batches.
"""

import json
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import torch
from torch.profiler import ProfilerActivity, profile

import plan
import train
from batch import outcomes
from kernelbench import load_tasks
from kernelbench.judge import Verdict
from model import load_config, load_policy, parameter_count
from packed import INPUT
from processes import LOCAL_WORLD, RANK, WORLD, Stop, all_reduce, join, leave, own_gpu, say
from weights import OffloadedAdamW, drop, refresh, reshard, rollout_copy, shard


@dataclass
class Gap:
    """A time in which the GPU did nothing."""

    ms: float
    after: str  # what ran last
    before: str  # what ran next
    cpu: str  # the innermost thing that the CPU did in the middle of it


ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}


def between(busy: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str, str]]:
    """busy: (start, end, name), sorted. The times in which none of them ran: (length, start, what ran last, what ran next)."""
    found, (_, end, last) = [], busy[0]
    for start, stop, name in busy:
        if start > end:
            found.append((start - end, end, last, name))
        if stop > end:
            end, last = stop, name
    return found


def trace_of(prof: profile) -> list[dict]:
    """The events of the profiler's chrome trace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        return json.loads(path.read_text())["traceEvents"]


def on_gpu(events: Sequence[dict]) -> list[tuple[float, float, str]]:
    """(start, end, name) of the kernels, copies and memsets among them, in us, sorted."""
    busy = [e for e in events if e.get("ph") == "X" and "dur" in e and e.get("cat") in ON_GPU]
    return sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in busy)


def idle_gaps(events: Sequence[dict], n: int = 3) -> tuple[float, list[Gap]]:
    """The idle share of a chrome trace's span on the GPU, and its n longest gaps. Streams count together."""
    timed = [e for e in events if e.get("ph") == "X" and "dur" in e]
    if not (busy := on_gpu(timed)):
        return 0.0, []
    cpu = [e for e in timed if e.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver", "user_annotation")]
    found = between(busy)
    span = max(end for _, end, _ in busy) - busy[0][0]
    gaps = []
    for length, start, after, before in sorted(found, reverse=True)[:n]:
        middle = start + length / 2
        around = [e for e in cpu if e["ts"] <= middle <= e["ts"] + e["dur"]]
        doing = min(around, key=lambda e: e["dur"])["name"] if around else "Python between operators"
        gaps.append(Gap(length / 1000, after, before, doing))
    return sum(length for length, *_ in found) / span, gaps


def kernels(busy: Sequence[tuple[float, float, str]], times: int, what: str, n: int = 24) -> list[str]:
    """What takes the GPU's time, in words: `busy` (see on_gpu) is of `times` equal parts, each a `what`. Names that begin alike count together."""
    spent: dict[str, list[float]] = {}
    for start, end, name in busy:
        spent.setdefault(name[:80], []).append(end - start)
    whole, count = (sum(map(of, spent.values())) / times for of in (sum, len))
    rows = sorted(spent.items(), key=lambda item: -sum(item[1]))[:n]
    return [f"a {what}: {count:.0f} kernels and copies, {whole / 1e3:.3f} ms"] + [
        f"  {sum(took) / times / whole:6.1%}  {len(took) / times:7.1f} x {sum(took) / len(took):7.1f} us  {name}"
        for name, took in rows
    ]


def some_rows(row: int, tokens: int, ragged: bool, rng: random.Random) -> list[int]:
    """Lengths that fill `tokens`: all `row`, or from a quarter of it up to it."""
    lengths, room = [], tokens
    while room >= (row // 4 if ragged else row):
        lengths.append(min(room, rng.randint(row // 4, row)) if ragged else row)
        room -= lengths[-1]
    return lengths


@dataclass
class Train:
    """Model FLOP utilisation, peak memory beside the plan, and where the GPU waits; one process per GPU under torchrun."""

    model: str = "qwen-8b"
    """an alias, or a folder with a config.json; weights are random"""
    row: int = 4_096
    """tokens of a row"""
    tokens: int = 16_384
    """tokens of a micro-batch on each GPU"""
    micro_batches: int = 8
    """measured, after two others"""
    ragged: bool = False
    """rows of other lengths in each micro-batch, a quarter of --row at least"""
    offload: bool = False
    """as train.py's"""
    update: bool = True
    """one optimizer step and refresh, with the moments and the copy that they need"""
    peak: float = 790e12
    """FLOP per second of the GPU"""
    device: Literal["cuda", "cpu"] = "cuda"
    seed: int = 0

    def run(self):
        own_gpu()
        join(self.device, sharded=True)
        cuda, rng = self.device == "cuda", random.Random(self.seed)
        device = torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")
        compute = torch.bfloat16 if cuda else torch.float32
        fits = self.fits() if cuda else None
        policy, _ = load_policy(self.model, device, torch.float32, random_init=True)
        n, vocabulary = parameter_count(policy), policy.config.vocab_size
        sampler = rollout_copy(policy, compute) if self.update else None
        keep = fits.keep if fits else [INPUT] * policy.config.num_hidden_layers
        policy = shard(policy, compute, keep, cuda, fits is not None and fits.gathered)
        offload = fits is None or fits.host > 0
        if self.update and offload:
            optimizer = OffloadedAdamW(policy.parameters(), fits.first_dtype if fits else torch.float32, lr=1e-6)
            drop(sampler)
        elif self.update:
            optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6, fused=True)

        def micro_batch() -> int:
            lengths = some_rows(self.row, self.tokens, self.ragged, rng)
            ids = torch.randint(vocabulary, (sum(lengths),), device=device)
            wanted = torch.ones(len(ids), dtype=torch.bool, device=device)
            logp, _ = policy.score(ids, lengths, wanted, 1.0, self.tokens if cuda else 0, len(ids) - len(lengths))
            (logp.sum() / 1000).backward()
            return len(ids)

        def timed(work) -> float:
            torch.cuda.synchronize() if cuda else None
            begin = time.perf_counter()
            work()
            torch.cuda.synchronize() if cuda else None
            return time.perf_counter() - begin

        say(f"compilation and two micro-batches: {timed(lambda: (micro_batch(), micro_batch())):.1f} s")
        graphs = graph_count()
        counted = []
        torch.cuda.reset_peak_memory_stats() if cuda else None
        seconds = timed(lambda: counted.extend(micro_batch() for _ in range(self.micro_batches)))
        tokens, seconds = all_reduce([sum(counted)])[0], all_reduce([seconds], torch.distributed.ReduceOp.MAX)[0]
        rate = tokens / seconds
        say(f"{n / 1e9:.2f} B parameters, {WORLD} GPUs, rows of {self.row}{' at most' if self.ragged else ''}:")
        say(f"forward and backward: {rate:.0f} tokens/s, {seconds / self.micro_batches:.3f} s per micro-batch")
        say(f"model FLOP utilisation {6 * n * rate / (WORLD * self.peak):.1%}")
        say(f"graphs compiled meanwhile: {graph_count() - graphs}")
        if cuda:
            say(plan.check_peak(fits))
            events = self.traced(micro_batch)
            share, gaps = idle_gaps(events)
            say(f"idle share {share:.1%} of two micro-batches; the longest gaps:")
            for gap in gaps:
                say(f"  {gap.ms:8.3f} ms between {gap.after[:48]} and {gap.before[:48]}, CPU in {gap.cpu[:60]}")
            say("\n".join(kernels(on_gpu(events), 2, "micro-batch")))
        reshard(policy)
        if self.update:
            first, second = timed(optimizer.step), timed(optimizer.step)
            optimizer.zero_grad(set_to_none=True)
            copied = timed(lambda: refresh(sampler, policy))
            say(
                f"optimizer step {second:.2f} s (the first, which makes the moments, {first:.2f} s), refresh {copied:.2f} s"
            )
            if cuda:
                say(plan.check_peak(fits) + ", the step included")
        leave()

    def fits(self) -> plan.Plan:
        """The memory plan of this machine, printed; offloaded where nothing else fits."""
        shape = plan.shape_of(load_config(self.model, random_init=True))
        free = all_reduce([torch.cuda.mem_get_info()[0], plan.host_memory()], torch.distributed.ReduceOp.MIN)
        memory, host = map(int, free)
        offload = self.offload or not self.update  # then there are no moments and no copy
        setup = plan.Setup(WORLD, LOCAL_WORLD, memory, host, self.tokens, self.row, offload)
        if plan.why_not(plan.estimate(shape, setup), setup):
            setup = plan.replace(setup, offload=True)
        say(plan.estimate(shape, setup).table())
        return or_sentence(lambda: plan.fit(shape, setup))

    def traced(self, micro_batch) -> list[dict]:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            micro_batch(), micro_batch()
            torch.cuda.synchronize()
        return trace_of(prof)


class Dice:
    """A gym that looks at nothing: half of the kernels are correct."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def as_completed(self, jobs):
        return enumerate([self.roll() for _ in jobs])

    def roll(self) -> Verdict:
        if self.rng.random() < 0.5:
            return Verdict("wrong", message="thrown with dice")
        speedup = 1 + self.rng.random()
        times = {"kernel_ms": 1.0, "reference_ms": speedup, "speedup": speedup}
        return Verdict("correct", correct=True, **times, coverage=1.0, coverage_raw=1.0)


@dataclass
class Step:
    """One RL step as train.py does it, on random weights: rollouts, log-probs, gradients, optimizer, refresh. Verdicts are dice, since
    random weights write no kernel, and every row enters the loss."""

    model: str = "qwen-14b"
    """an alias, or a folder with a config.json"""
    prompts: int = 2
    samples: int = 8
    turns: int = 3
    max_response: int = 4_096
    """tokens per turn; random weights hardly ever stop earlier"""
    context: int = 18_432
    """tokens of a rollout, and of a micro-batch"""
    offload: bool = False
    """as train.py's: on by itself where the step does not fit without"""
    device: Literal["cuda", "cpu"] = "cuda"
    tasks: str = "level1"

    def run(self):
        own_gpu()
        join(self.device, sharded=True)
        device = torch.device("cuda", torch.cuda.current_device()) if self.device == "cuda" else torch.device("cpu")
        same = ("model", "prompts", "samples", "turns", "max_response", "context", "device", "tasks")
        argv = [part for name in same for part in (f"--{name.replace('_', '-')}", str(getattr(self, name)))]
        argv += "--random-init --mrs-band inf --mrs-veto 0 --seed 0 --micro-tokens".split() + [str(self.context)]
        args = train.parse([*argv, *(["--offload"] if self.offload else [])])
        args, fits = or_sentence(lambda: plan.of_run(args))
        with Stop() as stop:
            unwatched = SimpleNamespace(beat=lambda *_: None, stop=stop)
            self.steps(train.load(args, Dice(RANK), device, None, unwatched, fits))
        leave()

    def steps(self, run: train.Run):
        args, fits = run.args, run.fits
        tasks = load_tasks(*args.tasks, device=self.device, seed=args.seed)
        for step in (1, 2):  # the first compiles and makes the moments
            begin = time.perf_counter()
            groups, numbers = train.draw(run, step, tasks)
            rolled = time.perf_counter() - begin
            if fits:
                torch.cuda.reset_peak_memory_stats()
            line, _ = train.learn(run, step, outcomes(groups, args.samples, args.turns), numbers)
            seconds = line | {"time/rollout": rolled, "time/step": time.perf_counter() - begin}
            laps = ", ".join(f"{name[5:]} {value:.1f} s" for name, value in seconds.items() if name[:5] == "time/")
            say(f"step {step}: {line['policy/rows']:.0f} rows, |g| {line['policy/grad_norm']:.3g}; {laps}")
            if fits:
                say(plan.check_peak(fits))


def or_sentence(make):
    """make(), or the end of the command with the sentence that says what would fit."""
    try:
        return make()
    except plan.PlanError as error:
        raise SystemExit(f"bench.py: {error}") from None


def graph_count() -> int:
    from torch._dynamo.utils import counters  # seconds that other commands need not pay

    return counters["stats"]["unique_graphs"]
