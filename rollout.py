"""Rollouts: prompts, generation with sampled log-probabilities, the multi-turn loop, trajectories in JSONL.

    python rollout.py --model tiny --tasks toy/test:16 --out runs/rollouts.jsonl
    python rollout.py --model qwen-8b --tasks level1 --samples 4 --out runs/level1.jsonl

A rollout is up to K turns: the model answers with a program, the gym judges it, the verdict becomes the next user
message. A turn's prompt is the exact list of ids the model saw: the ids it sampled stay as sampled and the text is
never tokenised again.

Layout (our own ChatML, whatever template the tokenizer ships):
`<|im_start|>user\\n{text}<|im_end|>\\n<|im_start|>assistant\\n`. Reasoning stays in the context. Models that would
think by default (their template knows `enable_thinking`) get an empty think block.

Departures from the released code: no re-tokenisation of earlier answers, no left-truncation of long prompts, no
answer-ending word tokens ("user", "assistant"); a turn that no longer fits the context earns 0 instead of being
dropped; the gym's own faults make turns invalid instead of earning 0; the reward is not shown to the model.
"""

import ast
import contextlib
import json
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import tyro
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from engine import Request
from feedback import feedback
from generation import engine_for, generate
from gym import Gym, GymError, Job
from kernelbench import Task, TaskError, load_tasks
from kernelbench.judge import Verdict
from model import END, START, ModelError, load_policy, preset_of, resolve

FEEDBACK_TOKENS = 1024  # the most that one verdict may take of the context


# -------------------------------------------------------------------------------------------------------------- records


@dataclass
class Turn:
    """One answer. prompt_ids: the ids the model saw; ids: what it sampled, with the stop token where one was sampled;
    logp: the sampler's log-probability of each of ids. valid=False: no reward is known for it (a fault of the gym, now
    or later). A turn that no longer fitted the context has no ids and no verdict, and is valid."""

    prompt_ids: list[int]
    ids: list[int]
    logp: list[float]
    text: str
    code: str | None
    verdict: Verdict | None
    valid: bool = True


@dataclass
class Trajectory:
    """One sample of one task: K turns, or fewer where a fault of the gym ended it."""

    task: Task
    sample: int
    turns: list[Turn] = field(default_factory=list)

    def to_json(self) -> dict:
        turns = [vars(t) | {"verdict": t.verdict.to_json() if t.verdict else None} for t in self.turns]
        return {"task": asdict(self.task), "sample": self.sample, "turns": turns}

    @classmethod
    def from_json(cls, data: dict) -> "Trajectory":
        verdicts = [Verdict.from_json(t["verdict"]) if t["verdict"] else None for t in data["turns"]]
        turns = [Turn(**(t | {"verdict": v})) for t, v in zip(data["turns"], verdicts, strict=True)]
        return cls(Task(**data["task"]), data["sample"], turns)


class TrajectoryError(ValueError):
    """A trajectory file that cannot be used; the text is what the user reads."""


def save_jsonl(path: str | Path, trajectories: Sequence[Trajectory], append: bool = False) -> None:
    """One trajectory a line. Raises OSError where the disk does not let it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a" if append else "w") as file:
        file.write("".join(json.dumps(t.to_json()) + "\n" for t in trajectories))


def load_jsonl(path: str | Path) -> list[Trajectory]:
    """Raises TrajectoryError naming file and line, OSError where there is no such file."""
    trajectories = []
    with open(path, errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                trajectories.append(Trajectory.from_json(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise TrajectoryError(
                    f"{path}, line {number} is no trajectory ({type(error).__name__}: {error}): delete that line "
                    f"(`sed -i {number}d {path}`), or write the file anew with rollout.py."
                ) from None
    return trajectories


# -------------------------------------------------------------------------------------------------------------- prompts

INSTRUCTIONS = """Write Triton kernels that make a PyTorch module faster.

You get a module `Model`. Write `ModelNew`, which computes the same result in less time, with kernels of your own in
Triton. Fuse neighbouring operations, read each value from memory once, and leave to PyTorch only what is not worth a
kernel.

Here is an example. This module:

```python
import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.rand(4096, 1000), torch.rand(4096, 1000)]


def get_init_inputs():
    return []
```

can be answered by:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    a = tl.load(a_ptr + index, mask=mask)
    b = tl.load(b_ptr + index, mask=mask)
    tl.store(out_ptr + index, a + b, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        n = out.numel()
        add_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
        return out
```

Rules:
- Answer with one ```python block that holds everything: the imports, the kernels, and the class `ModelNew`.
- `ModelNew` has the same `__init__` and `forward` signatures as `Model`; parameters keep their names and shapes.
- The result is compared with the original in full fp32: TF32 is off, so `tl.dot` needs `input_precision="ieee"`.
- The work must be done by your own `@triton.jit` kernels, for any inputs. No torch.compile, no C++ or CUDA.
"""


def prompt_text(task: Task, style: str) -> str:
    """The first user message. style "full": instructions, a worked example, the rules, the task; "brief" (the tiny
    policy's): the task's source alone."""
    if style == "brief":
        return task.source
    assert style == "full", f'style is "full" or "brief", not {style!r}'
    return f"{INSTRUCTIONS}\nNow this module:\n\n```python\n{task.source.rstrip()}\n```\n"


def text_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Ids of plain text: special tokens in it are spelled out, so no task or verdict can end a message."""
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False).input_ids


def marker_ids(tokenizer: PreTrainedTokenizerBase, marker: str) -> list[int]:
    """Ids of <|im_start|> or <|im_end|>: one special token, or spelled out where the tokenizer has none."""
    return tokenizer(marker, add_special_tokens=False).input_ids


def _answer_header(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    template = tokenizer.chat_template if isinstance(tokenizer.chat_template, str) else ""
    ids = marker_ids(tokenizer, START) + text_ids(tokenizer, "assistant\n")
    if "enable_thinking" in template:
        ids += tokenizer("<think>\n\n</think>\n\n", add_special_tokens=False).input_ids
    return ids


def encode_prompt(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Ids of a user message and the header of the answer."""
    message = marker_ids(tokenizer, START) + text_ids(tokenizer, f"user\n{text}")
    return message + marker_ids(tokenizer, END) + text_ids(tokenizer, "\n") + _answer_header(tokenizer)


def encode_feedback(tokenizer: PreTrainedTokenizerBase, sampled: list[int], text: str) -> list[int]:
    """Ids after the sampled answer: the end of its message where it was cut, the user message, the next header."""
    end = marker_ids(tokenizer, END)
    closing = [] if sampled[-len(end) :] == end else end
    return closing + text_ids(tokenizer, "\n") + encode_prompt(tokenizer, text)


def pad_token(tokenizer: PreTrainedTokenizerBase) -> int:
    return tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id


def stop_tokens(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    end = marker_ids(tokenizer, END)
    return {tokenizer.eos_token_id} | (set(end) if len(end) == 1 else set())


# --------------------------------------------------------------------------------------------------- code from answers

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
MODEL_NEW = re.compile(r"^class[ \t]+ModelNew[ \t]*[(:]", re.MULTILINE)
PYTHON = ("", "python", "python3", "py", "triton")


def extract_code(text: str) -> str | None:
    """The last complete fenced block (``` or ~~~, marked as Python or unmarked) that defines ModelNew at top level.

    A block ends at the first bare fence that leaves it valid Python (so a fence inside a docstring does not cut it),
    else at the first bare fence. A block that is never closed does not count.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    fences = [(n, m[1], m[2]) for n, line in enumerate(lines) if (m := FENCE.match(line))]
    found, at = None, 0
    while at < len(fences):
        start, ticks, language = fences[at]
        closers = [k for k in range(at + 1, len(fences)) if not fences[k][2] and fences[k][1].startswith(ticks)]
        if not closers:
            at += 1
            continue
        blocks = {k: "\n".join(lines[start + 1 : fences[k][0]]) + "\n" for k in closers[:8]}
        end = closers[0]
        if language.lower() in PYTHON:
            whole = next((k for k, block in blocks.items() if MODEL_NEW.search(block) and _parses(block)), None)
            inner = next((k for k in range(at + 1, end) if fences[k][2]), None)
            if whole is None and inner is not None:  # this block was cut, another one began
                at = inner
                continue
            end = end if whole is None else whole
            if MODEL_NEW.search(blocks[end]):
                found = blocks[end]
        at = end + 1
    return found


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


# ------------------------------------------------------------------------------------------------------ multi-turn loop


def rollout(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tasks: list[Task],
    gym: Gym,
    *,
    samples: int,
    turns: int,
    style: str,
    max_prompt: int,
    max_response: int,
    context: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    seed: int,
    batch: int | None = None,
    progress: bool = False,
    overlap: bool = False,
) -> list[list[Trajectory]]:
    """[P][G] trajectories of up to `turns` turns, judged by `gym`. Deterministic in `seed` (as far as the verdicts
    are, and without `overlap`).

    max_prompt: the longest task prompt; max_response: the most tokens of an answer; context: of prompt and answer
    together. A turn that does not fit has no tokens and earns nothing. batch: sequences generated at once (None: all).
    overlap: the gym judges on GPUs of its own: each answer is judged while others are generated, of this turn and the
    next (where the engine generates). Else generating and judging take turns: nothing else runs while a kernel is timed.
    """
    groups = [[Trajectory(task, g) for g in range(samples)] for task in tasks]
    live = [t for group in groups for t in group]
    first = {task.name: encode_prompt(tokenizer, prompt_text(task, style)) for task in tasks}
    prompts = {id(t): first[t.task.name] for t in live}
    stop_ids = stop_tokens(tokenizer)
    sampling = {"stop_ids": stop_ids, "temperature": temperature, "top_p": top_p}

    def room(t: Trajectory) -> int:
        fits = len(first[t.task.name]) <= max_prompt
        return max(0, min(max_response, context - len(prompts[id(t)]))) if fits else 0

    def answered(t: Trajectory, ids: list[int], logp: list[float]) -> None:
        text = tokenizer.decode(ids[:-1] if ids and ids[-1] in stop_ids else ids, skip_special_tokens=False)
        t.turns.append(Turn(prompts[id(t)], ids, logp, text, extract_code(text), None))

    def judged(t: Trajectory, verdict: Verdict) -> bool:
        """Files the verdict and makes the next prompt; whether the rollout goes on."""
        _file_verdict(t, verdict)
        told = feedback(verdict, FEEDBACK_TOKENS, lambda s: len(text_ids(tokenizer, s)), brief=style == "brief")
        turn = t.turns[-1]
        prompts[id(t)] = turn.prompt_ids + turn.ids + encode_feedback(tokenizer, turn.ids, told)
        return verdict.status != "gym_error"

    slots = max(1, min(batch or len(live), len(live)))
    engine = engine_for(model, slots=slots, context=context, **sampling)
    with engine or contextlib.nullcontext():
        if engine and overlap:
            engine.generator.manual_seed(seed)
            _judge_meanwhile(engine, gym, live, prompts, turns, room, answered, judged, progress)
            return groups
        for k in range(turns):
            fitting = [t for t in live if room(t)]
            size = max(1, len(fitting)) if engine else slots
            for start in tqdm(range(0, len(fitting), size), f"turn {k + 1}", leave=False, disable=not progress):
                part, seed_k = fitting[start : start + size], derived_seed(seed, k, start)
                requests = [Request(prompts[id(t)], room(t), key=id(t)) for t in part]
                if engine:
                    engine.generate(requests, seed_k, progress)
                else:
                    generate(model, requests, pad_id=pad_token(tokenizer), seed=seed_k, **sampling)
                for t, request in zip(part, requests, strict=True):
                    answered(t, request.new, request.logp)
            for t in (t for t in live if len(t.turns) == k):
                answered(t, [], [])
            verdicts = gym.evaluate([Job(t.task, t.turns[k].code) for t in fitting], progress)
            over = {id(t) for t, verdict in zip(fitting, verdicts, strict=True) if not judged(t, verdict)}
            live = [t for t in live if id(t) not in over]
    return groups


def _judge_meanwhile(engine, gym, live, prompts, turns, room, answered, judged, progress) -> None:
    """Each trajectory goes through its turns on its own: its kernel is judged in a thread, then its next prompt is submitted."""
    by_key, judging = {id(t): t for t in live}, {}  # future -> trajectory

    def ask(t: Trajectory) -> None:
        if room(t):
            engine.submit(Request(prompts[id(t)], room(t), key=id(t)))
        else:
            for _ in range(turns - len(t.turns)):
                answered(t, [], [])

    for t in live:
        ask(t)
    bar = tqdm(total=len(live) * turns, desc="answers", leave=False, disable=not progress)
    with bar, ThreadPoolExecutor(len(live)) as pool:
        for request in engine.stream(more=lambda: bool(judging)):
            if request:
                t = by_key[request.key]
                answered(t, request.new, request.logp)
                judging[pool.submit(gym.evaluate, [Job(t.task, t.turns[-1].code)])] = t
                bar.update()
            for future in wait(judging, None if request is None and engine.idle() else 0, FIRST_COMPLETED).done:
                t = judging.pop(future)
                if judged(t, future.result()[0]) and len(t.turns) < turns:
                    ask(t)


def _file_verdict(trajectory: Trajectory, verdict: Verdict) -> None:
    """Files the verdict on the last turn. Where it says nothing about the kernel, this turn's reward is unknown, and so
    are the returns of the turns before it: all of them become invalid."""
    trajectory.turns[-1].verdict = verdict
    if verdict.status in ("gym_error", "unsupported"):
        for turn in trajectory.turns:
            turn.valid = False


def derived_seed(*parts: int | str) -> int:
    """A seed of 32 bits that depends on all parts and on nothing else."""
    return zlib.crc32(repr(parts).encode())


# ------------------------------------------------------------------------------------------------------------------ CLI


@dataclass
class Args:
    """Collects judged trajectories, one JSON line each; run it again to go on where it stopped."""

    model: str = "tiny"
    """tiny, an alias (qwen-0.6b ... qwen-14b, each also -base; drkernel-8b, drkernel-14b), a hub id, or a folder"""
    tasks: tuple[str, ...] = ("toy/test:16",)
    """what kernelbench.load_tasks takes: toy/test:N, level1, level2/3, a file, a folder, a parquet, hf:OWNER/NAME"""
    out: Path = Path("runs/rollouts.jsonl")
    """JSONL file; pairs of task and sample that it holds are skipped"""
    samples: int = 1
    """samples per task"""
    turns: int | None = None
    """turns per sample"""
    style: str | None = None
    """prompt: full (instructions and an example) or brief (the tiny policy's)"""
    max_prompt: int | None = None
    """longest task prompt, in tokens"""
    max_response: int | None = None
    """most tokens of one answer"""
    context: int | None = None
    """most tokens of prompt and answer together"""
    temperature: float | None = None
    """sampling temperature; 0 is greedy"""
    top_p: float | None = None
    """nucleus sampling"""
    rollout_batch: int | None = None
    """sequences per generate call; also about how many are judged and written at a time"""
    seed: int = 0
    """of tasks, sampling and, through the gym, inputs"""
    device: str | None = None
    """cpu or cuda; by default cuda where there is one"""
    any_code: bool = False
    """accept programs without a Triton kernel of their own"""
    random_init: bool = False
    """random weights in the model's shape: to try a machine without a download"""


def main(args: Args) -> None:
    args = resolve(args, preset_of(args.model))
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu" and preset_of(args.model) == "tiny":
        torch.set_num_threads(1)  # more gain nothing on so small a model and collapse beside the gym
    tasks = load_tasks(*args.tasks, device=device, seed=args.seed)
    done = {(t.task.key, t.sample) for t in load_jsonl(args.out)} if args.out.exists() else set()
    todo = {(task.key, g) for task in tasks for g in range(args.samples)} - done
    save_jsonl(args.out, [], append=True)  # no write permission is found out before the model is loaded
    print(f"{len(tasks)} tasks x {args.samples} samples to {args.out}, {len(todo)} to do; {args}")
    if not todo:
        return
    model, tokenizer = load_policy(args.model, device, random_init=args.random_init)
    sampling = ("samples", "turns", "style", "max_prompt", "max_response", "context", "temperature", "top_p")
    settings = {name: getattr(args, name) for name in sampling} | {"batch": args.rollout_batch}
    tally: Counter[str] = Counter()
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    others = range(1, gpus) if gpus > 1 else None  # judge while the first one generates
    settings["overlap"] = others is not None
    with (
        Gym(device=device, gpus=others, seed=args.seed, any_code=args.any_code) as gym,
        tqdm(total=len(todo), unit="rollout") as bar,
    ):
        step = max(1, args.rollout_batch // args.samples)  # tasks at a time
        for part in (tasks[i : i + step] for i in range(0, len(tasks), step)):
            if todo.isdisjoint((task.key, g) for task in part for g in range(args.samples)):
                continue
            seed = derived_seed(args.seed, part[0].key)  # whole parts again: a resumed file is the same
            groups = rollout(model, tokenizer, part, gym, seed=seed, **settings)
            new = [t for group in groups for t in group if (t.task.key, t.sample) in todo]
            save_jsonl(args.out, new, append=True)
            bar.update(len(new))
            tally.update(t.turns[-1].verdict.status if t.turns[-1].verdict else "no room" for t in new)
    print("last turns: " + ", ".join(f"{n} {status}" for status, n in tally.most_common()))


if __name__ == "__main__":
    try:
        main(tyro.cli(Args, description=__doc__))
    except (ModelError, TaskError, TrajectoryError, GymError) as error:
        sys.exit(f"rollout.py: {error}")
    except OSError as error:
        sys.exit(f"rollout.py: {error}: make room or get permission there, or give another --out.")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted: what is finished is in the file; the same command goes on from there.")
