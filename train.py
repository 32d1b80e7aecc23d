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
from_pretrained), plot.png. No KL term, no entropy bonus.
"""

import math
import os
import random
import secrets
import sys
import textwrap
import time
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

import logbook
import plan
import rewards
import sft
from batch import Outcomes, accumulate_gradients, outcomes, recompute_logprobs, sampled_tokens
from eval import evaluate, headline, summarise
from gym import Gym, GymError
from kernelbench import Task, TaskError, load_tasks
from logbook import RunError
from model import ModelError, load_policy, preset_of, resolve
from processes import (
    LOCAL_WORLD,
    RANK,
    WORLD,
    Stop,
    all_reduce,
    from_rank_0,
    gathered,
    join,
    leave,
    one_process_per_gpu,
    over_processes,
    own_gpu,
    say,
)
from rollout import Trajectory, rollout
from weights import OffloadedAdamW, drop, refresh, rollout_copy, shard

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


def seed_of(*parts) -> int:
    """A seed for each name of a random draw: (run seed, step, purpose, process)."""
    return random.Random("/".join(map(str, parts))).getrandbits(48)


def perturb(model, sigma: float, seed: int) -> None:
    """θ <- θ (1 + σ ε), ε ~ N(0, 1): a sampler that is deliberately not quite the policy; the same on all processes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + sigma * torch.randn(p.shape, generator=generator).to(p))


# --- Sampling, measuring, evaluating ------------------------------------------------------------------------------------


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


def draw(run: Run, step: int, tasks: Sequence[Task]) -> tuple[list[list[Trajectory]], list[int]]:
    """This process's rollouts of a step, [P][G], and the numbers of their prompts in the endless sequence.

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
        new = rollout(run.sampler, run.tokenizer, prompts, run.gym, samples=args.samples, seed=seed, **how)
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
    if (line["gym/error"] or 0) > args.max_gym_errors:
        return line, returns

    # 4. One optimizer step on the clipped surrogate.
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
            clip_low=args.clip_low,
            clip_high=args.clip_high,
            dual_clip=args.dual_clip,
        )
        norm = torch.nn.utils.clip_grad_norm_(run.policy.parameters(), args.grad_clip)
        norm = (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()
        line |= {"policy/loss": all_reduce([loss])[0], "policy/grad_norm": norm}
    line["policy/updated"] = int(n_selected > 0 and math.isfinite(line["policy/grad_norm"]))
    if line["policy/updated"]:
        run.optimizer.step()
    else:
        say(f"step {step}: no update, since {logbook.why_none(line)}.")
    run.optimizer.zero_grad(set_to_none=True)
    clock.append(time.perf_counter())

    # 5. The sampler follows.
    refresh(run.sampler, run.policy)
    clock.append(time.perf_counter())
    laps = {name: b - a for name, a, b in zip(("logprob", "update", "refresh"), clock, clock[1:], strict=False)}
    return line | {f"time/{name}": seconds for name, seconds in laps.items()}, returns


def held_out(run: Run, tasks: Sequence[Task]) -> dict[str, float | None]:
    """eval/...: the figures over the held-out tasks, the same on every process."""
    args, seed = run.args, seed_of(run.args.seed, "eval", RANK)
    how = sampling(args, args.eval_context, args.eval_top_p) | {"samples": args.eval_samples, "seed": seed}
    records = gathered(evaluate(run.sampler, run.tokenizer, tasks[RANK::WORLD], run.gym, **how))
    failures = [r["message"] for r in records if r["status"] == "gym_error"]
    if len(failures) > args.max_gym_errors * len(records):
        raise RunError(f"{len(failures)} of {len(records)} evaluations failed in the gym itself: {max(failures)}")
    return headline(summarise(records, args.turns), args.turns) | {"eval/tasks": len(tasks)}


# --- The loop ------------------------------------------------------------------------------------------------------------


def load(args: Args, gym, device: torch.device, checkpoint: Path | None, fits: plan.Plan | None) -> Run:
    """The policy in float32, its copy for sampling, the optimizer; from a checkpoint where there is one."""
    random_init = args.random_init and not checkpoint
    policy, tokenizer = load_policy(str(checkpoint or args.model), device, torch.float32, random_init)
    compute = DTYPES[args.dtype]
    sampler = rollout_copy(policy, compute)
    if is_initialized():
        policy = shard(policy, compute, fits.keep if fits else None, compiled=fits is not None)
    how = {"lr": args.lr, "betas": (0.9, 0.999), "weight_decay": args.weight_decay}
    if args.offload:
        optimizer = OffloadedAdamW(policy.parameters(), fits.first_dtype if fits else torch.float32, **how)
    else:
        optimizer = torch.optim.AdamW(policy.parameters(), **how, fused=device.type == "cuda")
    if checkpoint:
        logbook.load_optimizer(checkpoint, policy, optimizer, args)
    return Run(args, policy, sampler, tokenizer, optimizer, logbook.TimedGym(gym))


def main_loop(args: Args, gym, device: torch.device, fits: plan.Plan | None) -> None:
    """Trains. args is resolved; gym judges; `fits` is the memory plan on GPUs."""
    tasks = load_tasks(*args.tasks, device=device.type, seed=args.seed)
    eval_tasks = load_tasks(*args.eval_tasks, device=device.type)  # the same for every seed
    out, start, checkpoint = logbook.open_run(args, device.type)
    say(textwrap.fill(f"{out}: " + ", ".join(f"{k}={v}" for k, v in vars(args).items()), 120))
    run, stop, saved = load(args, gym, device, checkpoint, fits), Stop(), start if checkpoint else -1

    def save(step: int) -> None:
        nonlocal saved
        if step != saved:
            logbook.save_checkpoint(out, step, run.policy, run.tokenizer, run.optimizer, args)
            saved = step

    def told_to_stop(step: int) -> bool:
        if not stop():
            return False
        save(step)
        say(f"Stopped after step {step}. Continue with: torchrun train.py --resume {out}")
        return True

    if not checkpoint:
        say(f"evaluating on {len(eval_tasks)} held-out tasks ...")
        logbook.append(out, {"step": 0} | held_out(run, eval_tasks))
    bar = tqdm(initial=start, total=args.steps, desc="train", unit="step", disable=None if RANK == 0 else True)
    for step in range(start + 1, args.steps + 1):
        if told_to_stop(step - 1):
            return
        begin = time.perf_counter()
        run.gym.reset()
        perturb(run.sampler, args.perturb_rollout, seed_of(args.seed, step, "perturb"))
        groups, numbers = draw(run, step, tasks)
        rolled = time.perf_counter() - begin
        if told_to_stop(step - 1):  # this step is abandoned; done again, it will be the same
            return
        o = outcomes(groups, args.samples, args.turns)
        if fits:
            torch.cuda.reset_peak_memory_stats()
        line, returns = learn(run, step, o, numbers)
        if fits and step == start + 1:
            say(plan.check_peak(fits))
        if (line["gym/error"] or 0) > args.max_gym_errors:
            save(step - 1)
            why = next((t.verdict.message for t in o.turns if t and t.verdict and t.verdict.status == "gym_error"), "")
            share = f"{line['gym/error']:.0%} of the evaluations of step {step} failed in the gym itself"
            raise RunError(f"{share} ({why}). When that is mended, continue with --resume {out}")
        counts = {"gym/distinct": (run.gym.distinct, run.gym.jobs)}
        counts["gym/evals_per_second"] = (run.gym.new, run.gym.seconds / WORLD)
        line |= {"step": step} | over_processes(counts)
        line |= {"time/rollout": rolled - run.gym.seconds, "time/gym": run.gym.seconds}
        line["time/step"] = time.perf_counter() - begin
        if step == args.steps or (args.eval_every and step % args.eval_every == 0):
            try:
                line |= held_out(run, eval_tasks)
            except RunError as error:  # training goes on without these figures
                say(str(error))
        logbook.append(out, line)
        logbook.write_transcripts(out / "transcripts" / f"step_{step:06d}.txt", groups, returns)
        say(logbook.one_line(line, args.steps))
        bar.update()
        if step == args.steps or step % args.save_every == 0:
            save(step)
    bar.close()
    if RANK == 0:
        logbook.finish(out)


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
    own_gpu()
    args = parse(argv)
    if args.device == "cuda":
        one_process_per_gpu(sys.argv)
    device = torch.device("cuda", torch.cuda.current_device()) if args.device == "cuda" else torch.device("cpu")
    join(args.device, sharded=args.dtype != "fp32")
    args, fits = plan.of_run(replace(args, seed=from_rank_0(args.seed)))
    if device.type == "cpu" and preset_of(args.model) == "tiny":
        torch.set_num_threads(1)  # more collapse when the gym's processes share the cores
    if args.model == "tiny" and not args.random_init and not args.resume:
        from_rank_0(sft.cold_start(args.device) if RANK == 0 else None)  # the others wait; at once where it is there
    workers = args.workers or (max(1, min(16, os.cpu_count() // LOCAL_WORLD)) if LOCAL_WORLD > 1 else None)
    with Gym(device=args.device, workers=workers, seed=args.seed, cluster=args.cluster) as gym:
        main_loop(args, gym, device, fits)
    leave()


def main() -> None:
    try:
        run(sys.argv[1:])
    except GymError as error:
        sys.exit(f"train.py: {error}")
    except (RunError, TaskError, ModelError) as error:  # the same on every process
        if RANK != 0:
            time.sleep(3)  # torchrun ends the others at the first exit: let process 0 speak
            sys.exit(1)
        leave(wait=False)
        sys.exit(f"train.py: {error}")
    except torch.OutOfMemoryError:
        free, total = (x / 2**30 for x in torch.cuda.mem_get_info())
        sys.exit(
            f"train.py: out of GPU memory ({free:.0f} of {total:.0f} GiB free): if another process is using the GPU, stop it or "
            "choose another with CUDA_VISIBLE_DEVICES; else lower --micro-tokens, --rollout-batch or --max-response. The last "
            "checkpoint is whole: continue with --resume"
        )
    except OSError as error:
        sys.exit(
            f"train.py: {error.filename}: {error.strerror}. Make room or choose another --out; what was written is whole."
        )
    except KeyboardInterrupt:
        sys.exit("Stopped at once. The last checkpoint is whole: continue with --resume")


if __name__ == "__main__":
    main()
