"""Reinforcement learning for Triton kernels: the method of Dr. Kernel (arXiv 2602.05885), in one loop.

    torchrun train.py                                  the tiny policy, on any machine, GPU or not
    torchrun train.py --model qwen-0.6b --tasks level1 level2
    torchrun train.py --resume runs/tiny-20260131-120000

A step: sample G multi-turn rollouts of each of P prompts, judge every kernel, pay each turn (PR), sum what follows it,
compare it with the other samples of its prompt and turn (TRLOO), drop what sampler and trainer disagree about (MRS) and
what is correct but lazy (PRS), and take one clipped policy-gradient step on the rest. `main_loop` reads in that order; the
formulas are in rewards.py.

Shapes: P prompts of this process, G samples, K turns, B rows (one per turn), T tokens.
Whole groups live on one process, so no baseline crosses processes. Everything random derives from (seed, step, process):
an interrupted run that is resumed ends with the numbers of one that was not, as does an abandoned step done again.

Under --out: metrics.jsonl (first line: arguments, commit, versions, device), transcripts/, checkpoints/ (each loads with
from_pretrained), plot.png. No KL term, no entropy bonus. Not covered yet: packed rows, offload, the memory plan.
"""

import copy
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import tyro
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from tqdm import tqdm

import rewards
import sft
from eval import evaluate, summarise
from gym import Gym
from kernelbench import Task, TaskError, load_tasks
from model import ModelError, load_policy, preset_of, refresh, resolve, save_policy, shard, token_logprobs
from rollout import Trajectory, Turn, rollout


@dataclass
class Args:
    model: str = "tiny"
    """alias (tiny, qwen-0.6b .. qwen-14b), hub id, or a folder that from_pretrained loads"""
    tasks: tuple[str, ...] | None = None
    """what to train on: level1, level2/12, a file, folder or parquet, toy/train:4096, ..."""
    out: Path | None = None
    """folder of the run; default: runs/<model>-<time>"""
    resume: Path | None = None
    """folder of a run to continue; its arguments apply, except those given again"""
    seed: int | None = None
    """of everything, the gym's secret inputs included; default: drawn, printed and logged"""
    device: str | None = None
    """cuda or cpu; default: a GPU if there is one"""
    dtype: str | None = None
    """what trainer and sampler compute in: bfloat16 or float32; the master weights are float32"""
    random_init: bool = False
    """random weights in the model's shape (to try the machinery)"""

    steps: int | None = None
    """optimizer steps in all"""
    prompts: int | None = None
    """P, prompts per step over all processes"""
    samples: int | None = None
    """G, rollouts per prompt"""
    turns: int | None = None
    """K, turns per rollout"""
    refill: bool = False
    """sample more prompts in place of those whose returns are all equal"""

    style: str | None = None
    """prompt and feedback: full or brief"""
    max_prompt: int | None = None
    """tokens of the first prompt"""
    max_response: int | None = None
    """sampled tokens per turn"""
    context: int | None = None
    """tokens of a whole rollout"""
    temperature: float | None = None
    """sampling temperature"""
    top_p: float | None = None
    """nucleus sampling; below 1 the log-probs are no longer those of the sampler"""
    rollout_batch: int | None = None
    """sequences generated at once"""
    workers: int | None = None
    """evaluations at once on a machine without a GPU; default: by the number of cores"""
    max_gym_errors: float = 0.2
    """stop when more than this share of a step's turns is lost to faults of the gym itself"""

    w_correct: float = 1.0
    """reward of a correct turn"""
    w_speed: float = 1.0
    """reward per unit of speed-up"""
    w_coverage: float = 1.0
    """PR: reward per unit of coverage; 0 for none"""
    speed_clip: float = 3.0
    """speed-up beyond this pays no more"""
    gamma: float = 1.0
    """discount per turn; 0: each turn for itself"""
    mrs_band: float = 0.001
    """MRS: half-width of the band around 1 for a rollout's geometric mean ratio; inf for none"""
    mrs_veto: float = 1e-4
    """MRS: a token ratio below this drops its turn; 0 for none"""
    importance_cap: float = 2.0
    """cap of the importance weights of tokens; 0 for no weights"""
    prs_threshold: float = 0.3
    """PRS: raw coverage up to which correct turns are dropped; -inf for none"""
    prs_width: float = 0.1
    """PRS: from the threshold to where all are kept"""

    lr: float | None = None
    """learning rate, constant"""
    weight_decay: float = 0.01
    """of AdamW"""
    grad_clip: float = 1.0
    """bound of the gradient's norm"""
    clip_low: float = 0.2
    """ratio clip below"""
    clip_high: float = 0.28
    """ratio clip above"""
    dual_clip: float = 3.0
    """bound of the loss of a turn with A < 0"""
    micro_batch: int | None = None
    """rows per forward and backward; changes memory and speed, not the result"""
    perturb_rollout: float = 0.0
    """noise on the sampler's weights relative to their size, to try the mismatch correction"""

    eval_tasks: tuple[str, ...] | None = None
    """held-out tasks"""
    eval_every: int | None = None
    """steps between evaluations; 0: only before and after"""
    eval_samples: int | None = None
    """samples per held-out task"""
    eval_top_p: float | None = None
    """nucleus sampling in evaluations"""
    eval_context: int | None = None
    """tokens of a whole rollout in evaluations"""
    save_every: int | None = None
    """steps between checkpoints; the last two are kept"""


# --- Processes ---------------------------------------------------------------------------------------------------------


def env(name: str, default: int) -> int:
    return int(os.environ.get(name, default))


WORLD, LOCAL_RANK = env("WORLD_SIZE", 1), env("LOCAL_RANK", 0)


def all_reduce(values: Sequence[float], op=dist.ReduceOp.SUM) -> list[float]:
    """Numbers summed (or as `op` says) over the processes, in float64."""
    if WORLD == 1:
        return list(values)
    device = "cuda" if torch.cuda.is_available() and dist.get_backend() == "nccl" else "cpu"
    tensor = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(tensor, op)
    return tensor.tolist()


def from_rank_0(value):
    box = [value]
    if WORLD > 1:
        dist.broadcast_object_list(box, src=0)
    return box[0]


def seed_of(*parts) -> int:
    """A seed for each name of a random draw: (run seed, step, purpose, process)."""
    return random.Random("/".join(map(str, parts))).getrandbits(48)


class Stop:
    """Ctrl-C and SIGTERM as a flag that is looked at between phases; a second one, 3 s later or more, ends at once."""

    def __init__(self):
        self.at = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.on_signal)

    def on_signal(self, number, frame):
        if self.at is not None and time.monotonic() - self.at > 3:
            raise KeyboardInterrupt
        if self.at is None:
            self.at = time.monotonic()
            say("Stopping after this phase; once more to stop at once, back to the last checkpoint.")

    def __call__(self) -> bool:
        """Whether any process was told to stop. Every process must ask at the same place."""
        return all_reduce([float(self.at is not None)], dist.ReduceOp.MAX)[0] > 0


# --- Rollouts -> tensors -----------------------------------------------------------------------------------------------


@dataclass
class Outcomes:
    """What the verdicts say, as (P, G, K) tensors, and the turns behind them."""

    correct: Tensor
    speedup: Tensor
    coverage: Tensor
    coverage_raw: Tensor
    valid: Tensor
    turns: list[Turn | None]  # P * G * K; None where the rollout ended before
    status: list[str]  # P * G * K


def outcomes(groups: Sequence[Sequence[Trajectory]], n_samples: int, n_turns: int) -> Outcomes:
    turns = [t.turns[k] if k < len(t.turns) else None for group in groups for t in group for k in range(n_turns)]
    verdicts = [turn.verdict if turn else None for turn in turns]
    shape = (len(groups), n_samples, n_turns)

    def grid(values: list, dtype=torch.float32) -> Tensor:
        return torch.tensor(values, dtype=dtype).reshape(shape)

    return Outcomes(
        correct=grid([bool(v and v.correct) for v in verdicts], torch.bool),
        speedup=grid([v.speedup if v else 0.0 for v in verdicts]),
        coverage=grid([v.coverage if v else 0.0 for v in verdicts]),
        coverage_raw=grid([v.coverage_raw if v else 0.0 for v in verdicts]),
        valid=grid([bool(turn and turn.valid) for turn in turns], torch.bool),
        turns=turns,
        status=[v.status if v else ("out_of_context" if turn else "none") for v, turn in zip(verdicts, turns, strict=True)],
    )


def sampled_tokens(turns: Sequence[Turn | None]) -> tuple[Tensor, Tensor]:
    """The sampler's log-probs (B, T) and the mask of sampled tokens (B, T), from lengths; T is the longest answer."""
    width = max((len(turn.ids) for turn in turns if turn), default=0) or 1
    logp, mask = torch.zeros(len(turns), width), torch.zeros(len(turns), width, dtype=torch.bool)
    for row, turn in enumerate(turns):
        if turn and turn.ids:
            assert len(turn.ids) == len(turn.logp), f"{len(turn.ids)} tokens, {len(turn.logp)} log-probs"
            logp[row, : len(turn.ids)] = torch.tensor(turn.logp)
            mask[row, : len(turn.ids)] = True
    return logp, mask


def answer_logprobs(policy, turns: Sequence[Turn], width: int, temperature: float) -> Tensor:
    """log π of each sampled token, (B, T) with T = width, 0 beyond each answer; differentiable."""
    device = next(policy.parameters()).device
    length = max(len(turn.prompt_ids) + len(turn.ids) for turn in turns)
    ids = torch.zeros(len(turns), length, dtype=torch.long)
    mask, wanted = torch.zeros_like(ids), torch.zeros_like(ids)  # right padding
    for row, turn in enumerate(turns):
        start, end = len(turn.prompt_ids), len(turn.prompt_ids) + len(turn.ids)
        ids[row, :end] = torch.tensor(turn.prompt_ids + turn.ids)
        mask[row, :end] = 1
        wanted[row, start:end] = 1
    logp = token_logprobs(policy, ids.to(device), mask.to(device), temperature, wanted.to(device))  # (B, length)
    at = torch.tensor([len(turn.prompt_ids) for turn in turns])[:, None] + torch.arange(width)  # (B, T)
    ends = torch.tensor([len(turn.prompt_ids) + len(turn.ids) for turn in turns])[:, None]
    picked = logp.gather(1, at.clamp(max=length - 1).to(device))
    return torch.where((at < ends).to(device), picked, 0.0)


def micro_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Indices in chunks of `size`, long rows together; as many chunks on each process (a sharded model's forward is joint)."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    chunks = [order[i : i + size] for i in range(0, len(order), size)]
    most = int(all_reduce([len(chunks)], dist.ReduceOp.MAX)[0])
    return chunks + [[]] * (most - len(chunks))


IDLE = Turn(prompt_ids=[0], ids=[0], logp=[0.0], text="", code=None, verdict=None, valid=False)  # fills an empty chunk


@torch.no_grad()
def recompute_logprobs(policy, turns: Sequence[Turn | None], width: int, temperature: float, micro_batch: int) -> Tensor:
    """log π_old (B, T): the trainer's own opinion of every sampled token, before the update."""
    logp = torch.zeros(len(turns), width)
    rows = [row for row, turn in enumerate(turns) if turn and turn.ids]
    for chunk in micro_batches([len(turns[row].prompt_ids) + len(turns[row].ids) for row in rows], micro_batch):
        scores = answer_logprobs(policy, [turns[rows[i]] for i in chunk] or [IDLE], width, temperature)
        if chunk:
            logp[[rows[i] for i in chunk]] = scores.float().cpu()
    return logp


def accumulate_gradients(
    policy,
    turns: Sequence[Turn],
    logp_old: Tensor,
    advantage: Tensor,
    weight: Tensor,
    n_rows: float,
    micro_batch: int,
    temperature: float = 1.0,
    **clips: float,
) -> float:
    """Adds the gradient of the whole batch's loss to the policy; returns this process's share of the loss.

    turns (B rows of this process), logp_old and weight (B, T), advantage (B,); n_rows counts over all processes.
    The sharded backward averages over the processes, the loss is a sum: hence the factor WORLD.
    """
    total = 0.0
    for chunk in micro_batches([len(turn.prompt_ids) + len(turn.ids) for turn in turns], micro_batch):
        logp = answer_logprobs(policy, [turns[i] for i in chunk] or [IDLE], weight.shape[1], temperature)
        old, a, w = (x[chunk].to(logp.device) if chunk else torch.zeros_like(logp) for x in (logp_old, advantage, weight))
        loss = rewards.policy_loss(logp, old, a if chunk else a[:, 0], w, n_rows, **clips)
        (loss * WORLD).backward()
        total += loss.item()
    return total


def perturb(model, sigma: float, seed: int) -> None:
    """θ <- θ (1 + σ ε), ε ~ N(0, 1): a sampler that is deliberately not quite the policy; the same on all processes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + sigma * torch.randn(p.shape, generator=generator).to(p))


# --- Sampling, measuring, evaluating ------------------------------------------------------------------------------------


class TimedGym:
    """A gym that counts its evaluations and the seconds they take."""

    def __init__(self, gym):
        self.gym, self.seconds, self.jobs = gym, 0.0, 0

    def evaluate(self, jobs, progress: bool = False):
        start = time.perf_counter()
        verdicts = self.gym.evaluate(jobs, progress)
        self.seconds += time.perf_counter() - start
        self.jobs += len(jobs)
        return verdicts


def pay(o: Outcomes, args: Args) -> tuple[Tensor, Tensor]:
    """Rewards and returns, both (P, G, K)."""
    weights = args.w_correct, args.w_speed, args.w_coverage, args.speed_clip
    reward = rewards.turn_reward(o.correct, o.speedup, o.coverage, *weights)
    return reward, rewards.returns_to_go(reward, args.gamma)


def prompt_of(tasks: Sequence[Task], seed: int, number: int) -> Task:
    """Prompt `number` of an endless sequence: one shuffle of all tasks after the other."""
    epoch, place = divmod(number, len(tasks))
    order = random.Random(f"{seed}/{epoch}").sample(range(len(tasks)), len(tasks))
    return tasks[order[place]]


def sample_step(step: int, args: Args, tasks: Sequence[Task], sampler, tokenizer, gym):
    """This process's rollouts of a step, and the numbers of their prompts in the endless sequence.

    With --refill, as many new prompts as had equal returns everywhere are sampled on top, at most three times.
    """
    groups, numbers, wanted = [], [], args.prompts
    rounds = 4 if args.refill else 1
    for round_ in range(rounds):
        first = ((step - 1) * rounds + round_) * args.prompts
        mine = range(first + RANK, first + wanted, WORLD)
        new = rollout(
            sampler,
            tokenizer,
            [prompt_of(tasks, args.seed, number) for number in mine],
            gym,
            **sampling(args, args.context, args.top_p),
            samples=args.samples,
            seed=seed_of(args.seed, step, "rollout", round_, RANK),
        )
        groups += new
        numbers += mine
        o = outcomes(new, args.samples, args.turns)
        wanted = int(all_reduce([rewards.equal_returns(pay(o, args)[1], o.valid).all(dim=1).sum().item()])[0])
        if wanted == 0:
            break
    return groups, numbers


def sampling(args: Args, context: int, top_p: float) -> dict:
    names = ("turns", "style", "max_prompt", "max_response", "temperature")
    return {n: getattr(args, n) for n in names} | {"context": context, "top_p": top_p, "batch": args.rollout_batch}


def held_out(args: Args, tasks: Sequence[Task], sampler, tokenizer, gym) -> dict[str, float | None]:
    """eval/...: figures of the last turn, of turn 1 and of the best turn over the held-out tasks, with standard errors."""
    seed = seed_of(args.seed, "eval", RANK)
    how = sampling(args, args.eval_context, args.eval_top_p) | {"samples": args.eval_samples, "seed": seed}
    parts = [evaluate(sampler, tokenizer, tasks[RANK::WORLD], gym, **how)]
    if WORLD > 1:
        parts, own = [None] * WORLD, parts[0]
        dist.all_gather_object(parts, own)
    records = [r for part in parts for r in part]
    lost = sum(r["status"] == "gym_error" for r in records)
    if lost > args.max_gym_errors * len(records):
        why = next((r["message"] for r in records if r["status"] == "gym_error" and r["message"]), "")
        raise RunError(f"{lost} of {len(records)} evaluations failed in the gym itself: {why}")
    figures = summarise(records, args.turns)
    places = {"eval/": args.turns - 1, "eval/turn1/": 0, "eval/best/": args.turns}
    line = {
        place + name + suffix: None if cells[k][i] != cells[k][i] else cells[k][i]
        for place, k in places.items()
        for name, cells in figures.items()
        for i, suffix in enumerate(("", "_se"))
    }
    return line | {"eval/tasks": len(tasks)}


def over_processes(line: dict[str, tuple[float, float]]) -> dict[str, float | None]:
    """(sum, count) of each metric on each process -> its mean over all of them; None where nothing was counted."""
    numbers = all_reduce([x for pair in line.values() for x in pair])
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return {name: total / count if count else None for name, (total, count) in zip(line, pairs, strict=True)}


# --- The loop ------------------------------------------------------------------------------------------------------------


def main_loop(args: Args, gym, device: torch.device) -> None:
    """Trains. args is resolved; gym evaluates jobs."""
    tasks = load_tasks(*args.tasks, device=device.type, seed=args.seed)
    eval_tasks = load_tasks(*args.eval_tasks, device=device.type)  # the same for every seed
    out, start, checkpoint = open_run(args, device.type)
    say(f"{out}: {json.dumps(asdict(args), default=str)}")
    policy, tokenizer = load_policy(str(checkpoint or args.model), device, torch.float32, args.random_init and not checkpoint)
    compute = getattr(torch, args.dtype)
    sampler = copy.deepcopy(policy).to(compute).eval().requires_grad_(False)
    if dist.is_initialized():
        policy = shard(policy, compute)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=args.lr, betas=(0.9, 0.999), weight_decay=args.weight_decay)
    if checkpoint:
        load_optimizer(checkpoint, policy, optimizer, args)
    gym, stop, saved, skipped = TimedGym(gym), Stop(), start if checkpoint else -1, 0

    def leave(step: int) -> None:
        if step != saved:
            save_checkpoint(out, step, policy, tokenizer, optimizer, args)
        say(f"Stopped after step {step}. Continue with: torchrun train.py --resume {out}")

    if not checkpoint:
        say(f"Evaluating on {len(eval_tasks)} held-out tasks ...")
        append(out, {"step": 0} | held_out(args, eval_tasks, sampler, tokenizer, gym))
    for step in tqdm(range(start + 1, args.steps + 1), initial=start, total=args.steps, desc="train", disable=RANK != 0):
        if stop():
            return leave(step - 1)

        # 1. Rollouts: K turns of G samples of each prompt, every kernel judged.
        clock = [time.perf_counter()]
        gym.seconds, gym.jobs = 0.0, 0
        perturb(sampler, args.perturb_rollout, seed_of(args.seed, step, "perturb"))
        groups, numbers = sample_step(step, args, tasks, sampler, tokenizer, gym)
        clock.append(time.perf_counter())
        if stop():
            return leave(step - 1)  # the step is abandoned; done again, it will be the same
        o = outcomes(groups, args.samples, args.turns)

        # 2. Rewards, returns, advantages.                                                        all (P, G, K)
        reward, returns = pay(o, args)
        advantage = rewards.leave_one_out(returns, o.valid)  # rewards.grpo for GRPO
        flat = rewards.equal_returns(returns, o.valid)  # (P, K)

        # 3. What the trainer thinks of the sampled tokens.                                       (P, G, K, T)
        logp_rollout, sampled = sampled_tokens(o.turns)
        logp_old = recompute_logprobs(policy, o.turns, sampled.shape[1], args.temperature, args.micro_batch)
        by_turn = (*o.valid.shape, sampled.shape[1])
        logp_old, logp_rollout, sampled = (x.reshape(by_turn) for x in (logp_old, logp_rollout, sampled))
        clock.append(time.perf_counter())

        # 4. What enters the loss: MRS, PRS, importance weights.
        keep_mrs = rewards.keep_by_mismatch(
            logp_old, logp_rollout, sampled & o.valid[..., None], args.mrs_band, args.mrs_veto
        )
        uniform = [torch.Generator().manual_seed(seed_of(args.seed, step, "prs", number)) for number in numbers]
        uniform = torch.stack([torch.rand(by_turn[1:3], generator=g) for g in uniform] or [torch.zeros(by_turn[1:3])])
        uniform = uniform[: len(numbers)]
        keep_prs = rewards.keep_by_coverage(
            o.correct, o.coverage_raw, args.prs_threshold, args.prs_width, uniform=uniform
        )
        selected = o.valid & keep_mrs & keep_prs & ~flat[:, None] & sampled.any(dim=-1)
        weight = torch.ones_like(logp_old)
        if args.importance_cap > 0:
            weight = rewards.importance_weights(logp_old, logp_rollout, args.importance_cap)
        counted = o.valid & ~flat.all(dim=1)[:, None, None] if args.refill else o.valid
        n_rows, n_selected = all_reduce([counted.sum().item(), selected.sum().item()])

        # 5. One optimizer step on the clipped surrogate.
        line = over_processes(
            measure(o, reward, returns, flat, keep_mrs, keep_prs, selected, logp_old, logp_rollout, sampled, weight)
        )
        if (line["gym/gym_error"] or 0) > args.max_gym_errors:
            leave(step - 1)
            raise RunError(gym_failure(f"{line['gym/gym_error']:.0%} of step {step}'s evaluations", o))
        rows = selected.flatten().nonzero()[:, 0].tolist()
        loss, norm = 0.0, 0.0
        if n_selected > 0:
            loss = accumulate_gradients(
                policy,
                [o.turns[row] for row in rows],
                logp_old.flatten(0, 2)[rows],
                advantage.flatten()[rows],
                torch.where(sampled, weight, 0.0).flatten(0, 2)[rows],
                n_rows,
                args.micro_batch,
                args.temperature,
                clip_low=args.clip_low,
                clip_high=args.clip_high,
                dual_clip=args.dual_clip,
            )
            norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), args.grad_clip)
            norm = (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()
        if n_selected > 0 and math.isfinite(norm):
            optimizer.step()
        else:
            skipped += 1
            say(f"step {step}: no update, since " + why_none(n_selected, line))
        optimizer.zero_grad(set_to_none=True)
        clock.append(time.perf_counter())

        # 6. The sampler follows.
        refresh(sampler, policy)
        clock.append(time.perf_counter())

        # 7. Records.
        line |= {
            "step": step,
            "policy/loss": all_reduce([loss])[0],
            "policy/grad_norm": norm,
            "policy/rows": n_selected,
            "policy/skipped_steps": skipped,
            "gym/evals_per_second": all_reduce([gym.jobs / max(gym.seconds, 1e-9)])[0],
            "time/gym": gym.seconds,
            "time/rollout": clock[1] - clock[0] - gym.seconds,
            "time/logprob": clock[2] - clock[1],
            "time/update": clock[3] - clock[2],
            "time/refresh": clock[4] - clock[3],
            "time/step": clock[4] - clock[0],
        }
