"""Reinforcement learning for Triton kernels: the method of Dr. Kernel (arXiv 2602.05885), in one loop.

    torchrun train.py                                  the tiny policy, on any machine, GPU or not
    torchrun train.py --model qwen-0.6b --tasks level1 level2
    torchrun train.py --resume runs/tiny-20260131-120000

A step: sample G multi-turn rollouts of each of P prompts, judge every kernel, pay each turn (PR), sum what follows it,
compare it with the other samples of its prompt and turn (TRLOO), drop what sampler and trainer disagree about (MRS) and
what is correct but lazy (PRS), and take one clipped policy-gradient step on the rest. `draw` and `learn` read in that order; the
formulas are in rewards.py.

Shapes: P prompts of this process, G samples, K turns, B rows (one per turn), T tokens.
Whole groups live on one process, so no baseline crosses processes. Everything random derives from (seed, step, process):
an interrupted run that is resumed ends with the numbers of one that was not, as does an abandoned step done again.

Under --out: metrics.jsonl (first line: arguments, commit, versions, device), transcripts/, checkpoints/ (each loads with
from_pretrained), plot.png. Ctrl-C, SIGTERM or `touch OUT/stop` saves and ends. No KL term, no entropy bonus.
"""

import math
import os
import secrets
import sys
import textwrap
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
import tyro
from torch import Tensor
from torch.distributed import is_initialized
from torch.distributed.tensor import DTensor
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

import checkpoint
import logbook
import plan
import processes
import rewards
import sft
from batch import Outcomes, accumulate_gradients, outcomes, prompt_of, recompute_logprobs, sampled_tokens, seed_of
from checkpoint import RunError
from eval import evaluate, headline, summarise
from gym import Gym, GymError
from kernelbench import Task, TaskError, load_tasks
from model import ModelError, load_policy, perturb, preset_of, resolve
from processes import LOCAL_WORLD, RANK, WORLD, Stop, all_reduce, from_rank_0, gathered, over_processes, say
from rollout import Trajectory, rollout
from watchdog import Watchdog
from weights import OffloadedAdamW, drop, refresh, rollout_copy, shard

MUTUAL = RunError, TaskError, ModelError  # raised on every process at once
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


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
    device: Literal["cuda", "cpu"] | None = None
    """cuda or cpu; default: a GPU if there is one"""
    dtype: Literal["bf16", "fp32"] | None = None
    """what trainer and sampler compute in: bf16 or fp32; the master weights are fp32"""
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

    style: Literal["full", "brief"] | None = None
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
    cluster: str | None = None
    """judge on a Ray cluster: auto, or ray://host:port; default: on this machine"""
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
    grad_explosion: float = 20.0
    """skip a step whose gradient's norm is more than this many times the median of the last 32; 0: only one that is not finite"""
    max_skips: int = 10
    """stop after this many skipped steps in a row; 0: never"""
    clip_low: float = 0.2
    """ratio clip below"""
    clip_high: float = 0.28
    """ratio clip above"""
    dual_clip: float = 3.0
    """bound of the loss of a turn with A < 0"""
    offload: bool = False
    """moments in host memory, no rollout copy during the update; turned on where the run does not fit without"""
    micro_tokens: int | None = None
    """tokens per forward and backward, of rows packed end to end; changes memory and speed, not the result"""
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
    stall_minutes: float = 20.0
    """write every process's stack to OUT/stalls when there is no token, verdict or micro-batch for so long"""


# --- Sampling, measuring, evaluating ------------------------------------------------------------------------------------


def pay(o: Outcomes, args: Args) -> tuple[Tensor, Tensor]:
    """Rewards and returns, both (P, G, K)."""
    weights = args.w_correct, args.w_speed, args.w_coverage, args.speed_clip
    reward = rewards.turn_reward(o.correct, o.speedup, o.coverage, *weights)
    return reward, rewards.returns_to_go(reward, args.gamma)


def sampling(args: Args, context: int, top_p: float) -> dict:
    names = ("turns", "style", "max_prompt", "max_response", "temperature")
    return {n: getattr(args, n) for n in names} | {"context": context, "top_p": top_p, "batch": args.rollout_batch}


# --- A step --------------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """What a training run holds in memory."""

    args: Args
    policy: torch.nn.Module  # trained; sharded where there are several processes
    sampler: torch.nn.Module  # a plain copy that generates
    tokenizer: PreTrainedTokenizerBase
    optimizer: torch.optim.Optimizer
    gym: logbook.TimedGym
    stop: Stop
    norms: deque[float]  # of the latest gradients, those of skipped steps included
    fits: plan.Plan | None = None
    skips: int = 0  # steps skipped in a row


def draw(run: Run, step: int, tasks: Sequence[Task]) -> tuple[list[list[Trajectory]], list[int]] | None:
    """This process's rollouts of a step, [P][G], and the numbers of their prompts in the endless sequence; None where a
    process was told to stop: the step is given up, and done again it will be the same.

    With --refill, as many new prompts as had equal returns everywhere are sampled on top, at most three times.
    """
    args, groups, numbers, wanted = run.args, [], [], run.args.prompts
    rounds = 4 if args.refill else 1
    for round_ in range(rounds):
        first = ((step - 1) * rounds + round_) * args.prompts
        mine = range(first + RANK, first + wanted, WORLD)
        prompts = [prompt_of(tasks, args.seed, number) for number in mine]
        seed = seed_of(args.seed, step, "rollout", round_, RANK)
        how = sampling(args, args.context, args.top_p)
        new = []
        with run.stop.abandonable():
            new = rollout(run.sampler, run.tokenizer, prompts, run.gym, samples=args.samples, seed=seed, **how)
        if run.stop():
            return None
        groups += new
        numbers += mine
        o = outcomes(new, args.samples, args.turns)
        wanted = int(all_reduce([rewards.equal_returns(pay(o, args)[1], o.valid).all(dim=1).sum().item()])[0])
        if wanted == 0:
            break
    return groups, numbers


def learn(run: Run, step: int, o: Outcomes, numbers: Sequence[int]) -> tuple[dict, Tensor]:
    """One update from the outcomes of a step's rollouts: (metrics, returns)."""
    args, clock = run.args, [time.perf_counter()]

    # 1. Rewards, returns, advantages.                                                                (P, G, K)
    reward, returns = pay(o, args)
    advantage = rewards.leave_one_out(returns, o.valid)  # rewards.grpo for GRPO
    flat = rewards.equal_returns(returns, o.valid)  # (P, K)

    if args.offload:
        drop(run.sampler)  # step 5 writes it anew

    # 2. The trainer's own log-probs of the sampled tokens.                                           (P, G, K, T)
    logp_rollout, sampled = sampled_tokens(o.turns)
    logp_old, entropy = recompute_logprobs(run.policy, o.turns, sampled.shape[1], args.temperature, args.micro_tokens)
    shape = (*o.valid.shape, sampled.shape[1])
    logp_old, logp_rollout, sampled = (x.reshape(shape) for x in (logp_old, logp_rollout, sampled))
    clock.append(time.perf_counter())

    # 3. What enters the loss: MRS, PRS, importance weights.
    in_baseline = sampled & o.valid[..., None]
    keep_mrs = rewards.keep_by_mismatch(logp_old, logp_rollout, in_baseline, args.mrs_band, args.mrs_veto)
    uniform = torch.zeros(o.valid.shape)
    for p, number in enumerate(numbers):  # by prompt, so that it does not matter which process holds it
        uniform[p].uniform_(generator=torch.Generator().manual_seed(seed_of(args.seed, step, "prs", number)))
    how = args.prs_threshold, args.prs_width
    keep_prs = rewards.keep_by_coverage(o.correct, o.coverage_raw, *how, uniform=uniform)
    selected = o.valid & keep_mrs & keep_prs & ~flat[:, None] & sampled.any(dim=-1)
    weight = torch.ones_like(logp_old)
    if args.importance_cap > 0:
        weight = rewards.importance_weights(logp_old, logp_rollout, args.importance_cap)
    counted = o.valid & ~flat.all(dim=1)[:, None, None] if args.refill else o.valid
    n_rows, n_selected = all_reduce([counted.sum().item(), selected.sum().item()])
    pairs = logbook.measure(
        o, reward, returns, flat, keep_mrs, keep_prs, selected, logp_old, logp_rollout, sampled, weight
    )
    pairs["policy/entropy_exact"] = entropy.sum().item(), sampled.sum().item()
    line = over_processes(pairs) | {"policy/loss": 0.0, "policy/grad_norm": 0.0, "policy/rows": n_selected}
    line |= {"policy/updated": 0, "policy/skipped": 0}
    if (line["gym/error"] or 0) > args.max_gym_errors:
        return line, returns

    # 4. One optimizer step on the clipped surrogate, unless the gradient is unsound.
    if n_selected > 0:
        rows = selected.flatten().nonzero()[:, 0].tolist()
        loss = accumulate_gradients(
            run.policy,
            [o.turns[row] for row in rows],
            logp_old.flatten(0, 2)[rows],
            advantage.flatten()[rows],
            torch.where(sampled, weight, 0.0).flatten(0, 2)[rows],
            n_rows,
            args.micro_tokens,
            args.temperature,
            **{name: getattr(args, name) for name in ("clip_low", "clip_high", "dual_clip")},
        )
        norm = torch.nn.utils.clip_grad_norm_(run.policy.parameters(), args.grad_clip)
        norm = (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()
        loss, norm = all_reduce([loss, norm / WORLD])  # the same bits everywhere, so the same decision
        why = logbook.why_skipped(loss, norm, run.norms, args.grad_explosion)
        line |= {"policy/loss": loss, "policy/grad_norm": norm, "policy/skipped": int(bool(why))}
        run.skips = run.skips + 1 if why else 0
        run.norms.extend([norm] if math.isfinite(norm) else [])
    else:
        why = logbook.why_none(line)
    line["policy/updated"] = int(not why)
    if why:
        say(f"step {step}: no update, since {why}.")
    else:
        run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    clock.append(time.perf_counter())

    # 5. The sampler follows.
    refresh(run.sampler, run.policy)
    clock.append(time.perf_counter())
    laps = {name: b - a for name, a, b in zip(("logprob", "update", "refresh"), clock, clock[1:], strict=False)}
    return line | {f"time/{name}": seconds for name, seconds in laps.items()}, returns


def held_out(run: Run, tasks: Sequence[Task]) -> dict[str, float | None]:
    """eval/...: the figures over the held-out tasks, the same on every process; nothing where one was told to stop."""
    args, seed = run.args, seed_of(run.args.seed, "eval", RANK)
    how = sampling(args, args.eval_context, args.eval_top_p) | {"samples": args.eval_samples, "seed": seed}
    records = []
    with run.stop.abandonable():
        records = evaluate(run.sampler, run.tokenizer, tasks[RANK::WORLD], run.gym, **how)
    if run.stop():
        return {}
    records = gathered(records)
    failures = [r["message"] for r in records if r["status"] == "gym_error"]
    if len(failures) > args.max_gym_errors * len(records):
        raise RunError(f"{len(failures)} of {len(records)} evaluations failed in the gym itself: {max(failures)}")
    return headline(summarise(records, args.turns), args.turns) | {"eval/tasks": len(tasks)}


# --- The loop ------------------------------------------------------------------------------------------------------------


def load(args: Args, gym, device: torch.device, folder: Path | None, watch: Watchdog, fits: plan.Plan | None) -> Run:
    """The policy in float32, its copy for sampling, the optimizer; from a checkpoint's folder where there is one."""
    random_init = args.random_init and not folder
    policy, tokenizer = load_policy(str(folder or args.model), device, torch.float32, random_init)
    compute = DTYPES[args.dtype]
    sampler = rollout_copy(policy, compute)
    if is_initialized():
        policy = shard(policy, compute, *((fits.keep, True, fits.gathered) if fits else ()))
    how = {"lr": args.lr, "betas": (0.9, 0.999), "weight_decay": args.weight_decay}
    if args.offload:
        optimizer = OffloadedAdamW(policy.parameters(), fits.first_dtype if fits else torch.float32, **how)
    else:
        optimizer = torch.optim.AdamW(policy.parameters(), **how, fused=device.type == "cuda")
    if folder:
        checkpoint.load(folder, policy, optimizer, args.lr, args.weight_decay)
    for model in (policy, sampler):
        model.get_input_embeddings().register_forward_pre_hook(watch.beat)
    return Run(
        args,
        policy,
        sampler,
        tokenizer,
        optimizer,
        logbook.TimedGym(gym, watch.beat),
        watch.stop,
        deque(maxlen=32),
        fits,
    )


def one_step(run: Run, step: int, tasks: Sequence[Task], out: Path) -> dict | None:
    """The step's line of metrics; None where a process was told to stop before the update."""
    args, begin = run.args, time.perf_counter()
    run.gym.reset()
    perturb(run.sampler, args.perturb_rollout, seed_of(args.seed, step, "perturb"))
    if not (drawn := draw(run, step, tasks)):
        return None
    groups, numbers = drawn
    rolled = time.perf_counter() - begin
    o = outcomes(groups, args.samples, args.turns)
    if run.fits:
        torch.cuda.reset_peak_memory_stats()
    line, returns = learn(run, step, o, numbers)
    if (line["gym/error"] or 0) > args.max_gym_errors:
        raise RunError(logbook.gym_trouble(step, line, o.turns, out))
    line |= {"step": step} | over_processes(run.gym.counts())
    line |= {"time/rollout": rolled - run.gym.seconds, "time/gym": run.gym.seconds}
    line["time/step"] = time.perf_counter() - begin
    logbook.write_transcripts(out / "transcripts" / f"step_{step:06d}.txt", groups, returns)
    return line


def main_loop(run: Run, out: Path, start: int, saved: int, tasks: Sequence[Task], eval_tasks: Sequence[Task]) -> None:
    """Goes on after step `start`. saved: the step of the last checkpoint, -1 for none."""
    args = run.args
    norms, run.skips, evaluated = logbook.history(out)
    run.norms.extend(norms)

    def save(step: int) -> None:
        nonlocal saved
        if step != saved:
            state = {"step": step, "model": args.model, "seed": args.seed}
            checkpoint.save(out, state, run.policy, run.tokenizer, run.optimizer, DTYPES[args.dtype], run.gym.beat)
            saved = step

    def stopped(step: int) -> None:
        save(step)
        say(f"Stopped after step {step}. Continue with: torchrun train.py --resume {out}")

    bar = tqdm(initial=start, total=args.steps, desc="train", unit="step", disable=None if RANK == 0 else True)
    for step in range(start, args.steps + 1):
        if step > start:
            try:
                line = one_step(run, step, tasks, out)
            except RunError:
                save(step - 1)
                raise
            if not line:
                return stopped(step - 1)
            if run.fits and step == start + 1:
                say(plan.check_peak(run.fits))
            logbook.append(out, line)
            say(logbook.one_line(line, args.steps))
            bar.update()
            if step == args.steps or step % args.save_every == 0:
                save(step)
            if 0 < args.max_skips <= run.skips:
                save(step)
                raise RunError(logbook.too_many_skips(run.skips, out))
        due = step in (0, args.steps) or (args.eval_every > 0 and step % args.eval_every == 0)
        if due and step not in evaluated:
            say(f"evaluating on {len(eval_tasks)} held-out tasks ...")
            try:
                line = held_out(run, eval_tasks)
            except RunError as error:
                if step == 0:
                    raise
                say(str(error))  # training goes on without these figures
                continue
            if not line:
                return stopped(step)
            logbook.append(out, {"step": step} | line)
            say(logbook.held_out_line(line))
    bar.close()
    if RANK == 0:
        logbook.finish(out)


def train(args: Args, gym, device: torch.device, stop: Stop, fits: plan.Plan | None) -> None:
    """args is resolved; gym judges; `fits` is the memory plan on GPUs."""
    tasks = load_tasks(*args.tasks, device=device.type, seed=args.seed)
    eval_tasks = load_tasks(*args.eval_tasks, device=device.type)  # the same for every seed
    out, start, folder = logbook.open_run(args, device.type)
    say(textwrap.fill(f"{out}: " + ", ".join(f"{k}={v}" for k, v in vars(args).items()), 120))
    with Watchdog(out, 60 * args.stall_minutes, stop, processes.board(), MUTUAL) as watch:
        run = load(args, gym, device, folder, watch, fits)
        checkpoint.make_room(out, run.policy, DTYPES[args.dtype])
        main_loop(run, out, start, start if folder else -1, tasks, eval_tasks)
        from_rank_0(None)  # the others wait here for what process 0 still writes, and are watched


# --- Command ---------------------------------------------------------------------------------------------------------------


def parse(argv: list[str]) -> Args:
    """The arguments with all None fields filled in: from the resumed run, else from the model's preset."""
    args = tyro.cli(Args, args=argv, description=__doc__)
    if args.resume:
        args = tyro.cli(Args, args=argv, default=Args(**(logbook.arguments_of(args.resume) | {"resume": args.resume})))
    args = replace(args, device=args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    preset = preset_of(args.model)
    args = resolve(args, "tiny-gpu" if preset == "tiny" and args.device == "cuda" else preset)
    args = replace(args, seed=secrets.randbits(31) if args.seed is None else args.seed)
    if args.samples < 2 or args.prompts < 1 or args.turns < 1:
        raise RunError(
            "A step needs at least one prompt, one turn, and two samples to compare: see --prompts, --turns, --samples."
        )
    if args.temperature <= 0:
        raise RunError("Training samples from the policy: --temperature must be above 0.")
    return args


def run(argv: list[str]) -> None:
    processes.own_gpu()
    args = parse(argv)
    if args.device == "cuda":
        processes.one_process_per_gpu(sys.argv)
    device = torch.device("cuda", torch.cuda.current_device()) if args.device == "cuda" else torch.device("cpu")
    processes.join(args.device, sharded=args.dtype != "fp32")
    args, fits = plan.of_run(replace(args, seed=from_rank_0(args.seed)))
    if device.type == "cpu" and preset_of(args.model) == "tiny":
        torch.set_num_threads(1)  # more collapse when the gym's processes share the cores
    if args.model == "tiny" and not args.random_init and not args.resume:
        from_rank_0(sft.cold_start(args.device) if RANK == 0 else None)  # the others wait; at once where it is there
    workers = args.workers or (max(1, min(16, os.cpu_count() // LOCAL_WORLD)) if LOCAL_WORLD > 1 else None)
    with Stop() as stop, Gym(device=args.device, workers=workers, seed=args.seed, cluster=args.cluster) as gym:
        train(args, gym, device, stop, fits)
    processes.leave()


def main() -> None:
    with processes.one_sentence("train.py", MUTUAL, (GymError,)):
        run(sys.argv[1:])


if __name__ == "__main__":
    main()
