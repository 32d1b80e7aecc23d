"""Trajectories -> tensors, log-probs of the sampled tokens, gradients of the whole batch's loss.

A micro-batch is as many rows, packed end to end, as `micro_tokens` tokens hold; what comes out does not depend on it.

Shapes: P prompts of this process, G samples, K turns, B rows (one per turn: P * G * K, or some of them), T sampled tokens of
the longest answer. Answers are aligned at their first token; masks come from lengths, never from pad ids.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.distributed import ReduceOp
from torch.distributed.fsdp import FSDPModule

from kernelbench import Task
from packed import score
from processes import WORLD, all_reduce
from rewards import policy_loss
from rollout import Trajectory, Turn
from weights import reshard


def seed_of(*parts) -> int:
    """A seed for each name of a random draw: (run seed, step, purpose, process)."""
    return random.Random("/".join(map(str, parts))).getrandbits(48)


def prompt_of(tasks: Sequence[Task], seed: int, number: int) -> Task:
    """Prompt `number` of an endless sequence: one shuffle of all tasks after the other."""
    epoch, place = divmod(number, len(tasks))
    order = random.Random(f"{seed}/{epoch}").sample(range(len(tasks)), len(tasks))
    return tasks[order[place]]


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
        status=[
            v.status if v else ("out_of_context" if turn else "none") for v, turn in zip(verdicts, turns, strict=True)
        ],
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


def answer_logprobs(
    policy, turns: Sequence[Turn], width: int, temperature: float, pad_to: int = 0
) -> tuple[Tensor, Tensor]:
    """log π of each sampled token (differentiable), and the entropy of what it was drawn from (not): (B, T) with T = width, 0 beyond
    each answer. pad_to: see packed.score; for a sharded policy on a GPU, whose layers are compiled for one shape."""
    device = next(policy.parameters()).device
    prompts = torch.tensor([len(turn.prompt_ids) for turn in turns])
    ends = torch.tensor([len(turn.ids) for turn in turns]) + prompts  # (B,)
    ids = torch.tensor([i for turn in turns for i in (*turn.prompt_ids, *turn.ids)])
    wanted = torch.cat([torch.arange(end) >= start for start, end in zip(prompts, ends, strict=True)])
    sharded = isinstance(policy, FSDPModule)
    scorer = policy.score if sharded else partial(score, policy)
    fixed = pad_to if sharded and device.type == "cuda" else 0
    scored = int((ends - prompts.clamp(min=1)).sum())
    scores = scorer(to(device, ids), ends.tolist(), to(device, wanted), temperature, fixed, scored)
    at = prompts[:, None] + torch.arange(width)  # (B, T): place in its row
    inside = at < ends[:, None]
    at = to(device, torch.where(inside, at + (ends.cumsum(0) - ends)[:, None], 0))  # place in the pack
    inside = to(device, inside)
    logp, entropy = (torch.where(inside, x[at], 0.0) for x in scores)
    return logp, entropy


def to(device: torch.device, tensor: Tensor) -> Tensor:
    """Without waiting for what the GPU does at the time."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def micro_batches(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Indices of rows in chunks of at most `tokens` tokens (a longer row stands alone), long rows first and each in the first chunk
    that has room; as many chunks on each process (a sharded model's forward is joint)."""
    chunks, room = [], []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        place = next((i for i, left in enumerate(room) if left >= lengths[row]), len(chunks))
        if place == len(chunks):
            chunks.append([])
            room.append(tokens)
        chunks[place].append(row)
        room[place] -= lengths[row]
    most = int(all_reduce([len(chunks)], ReduceOp.MAX)[0])
    return chunks + [[]] * (most - len(chunks))


IDLE = Turn(prompt_ids=[0], ids=[0], logp=[0.0], text="", code=None, verdict=None, valid=False)  # fills an empty chunk


@torch.no_grad()
def recompute_logprobs(
    policy, turns: Sequence[Turn | None], width: int, temperature: float, micro_tokens: int
) -> tuple[Tensor, Tensor]:
    """log π_old, the trainer's own opinion of every sampled token before the update, and the entropy there: (B, T) each."""
    logp, entropy = torch.zeros(len(turns), width), torch.zeros(len(turns), width)
    rows = [row for row, turn in enumerate(turns) if turn and turn.ids]
    done = []
    for chunk in micro_batches([len(turns[row].prompt_ids) + len(turns[row].ids) for row in rows], micro_tokens):
        scores = answer_logprobs(policy, [turns[rows[i]] for i in chunk] or [IDLE], width, temperature, micro_tokens)
        done.append(([rows[i] for i in chunk], scores))
    for places, scores in done:
        if places:
            logp[places], entropy[places] = (x.cpu() for x in scores)
    reshard(policy)  # without a backward the root at least stays gathered
    return logp, entropy


def accumulate_gradients(
    policy,
    turns: Sequence[Turn],
    logp_old: Tensor,
    advantage: Tensor,
    weight: Tensor,
    n_rows: float,
    micro_tokens: int,
    temperature: float = 1.0,
    **clips: float,
) -> float:
    """Adds the gradient of the whole batch's loss to the policy; returns this process's share of the loss.

    turns (B rows of this process), logp_old and weight (B, T), advantage (B,); n_rows counts over all processes.
    The sharded backward averages over the processes, the loss is a sum: hence the factor WORLD.
    """
    total, width = torch.zeros(()), weight.shape[1]
    for chunk in micro_batches([len(turn.prompt_ids) + len(turn.ids) for turn in turns], micro_tokens):
        rows = [turns[i] for i in chunk] or [IDLE]
        logp, _ = answer_logprobs(policy, rows, width, temperature, micro_tokens)
        old, a, w = (
            to(logp.device, x[chunk]) if chunk else torch.zeros_like(logp) for x in (logp_old, advantage, weight)
        )
        loss = policy_loss(logp, old, a if chunk else a[:, 0], w, n_rows, **clips)
        (loss * WORLD).backward()
        total = total.to(loss.device) + loss.detach()  # no wait for the GPU between micro-batches
    reshard(policy)
    return total.item()
