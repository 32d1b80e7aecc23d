"""Checkpoints: exact, whole or not at all, on another number of processes; the export; disks that are full, files that are broken."""

import json
import resource
from pathlib import Path

import pytest
import ranks
import torch
from transformers import AutoModelForCausalLM, Qwen3Config

import checkpoint
import logbook
from model import ModelError, load_policy, tiny_policy
from weights import shard


def trained(steps: int = 2):
    """A small policy, its tokenizer and an AdamW that has made `steps` steps on made-up gradients."""
    policy, tokenizer = tiny_policy([], hidden=32, layers=2, heads=2)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    for step in range(steps):
        step_on(policy, optimizer, step)
    return policy, tokenizer, optimizer


def step_on(policy, optimizer, seed: int) -> None:
    ids = torch.arange(12, device=policy.device)[None]
    policy(ids + seed, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def numbers(policy, optimizer) -> dict[str, torch.Tensor]:
    """Weights and moments by name, whole, on every process."""
    found = {}
    for name, p in policy.named_parameters():
        found[name] = p.detach()
        found |= {f"{name}/{key}": value for key, value in optimizer.state[p].items()}
    return {k: (v.full_tensor() if hasattr(v, "full_tensor") else v).cpu().clone() for k, v in found.items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def reload(folder: Path):
    policy, tokenizer = load_policy(str(folder), "cpu", torch.float32)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1.0)
    checkpoint.load(folder, policy, optimizer, 1e-3, 0.01)
    return policy, tokenizer, optimizer


def save(out: Path, step: int, *what, dtype=torch.bfloat16) -> Path:
    checkpoint.save(out, {"step": step, "model": "tiny", "seed": 0}, *what, dtype)
    return out / "checkpoints" / f"step_{step:06d}"


def test_the_master_is_exact_and_the_export_is_rounded(tmp_path):
    policy, tokenizer, optimizer = trained()
    folder = save(tmp_path, 2, policy, tokenizer, optimizer)
    exported = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    for name, tensor in policy.state_dict().items():
        assert exported[name].dtype == torch.bfloat16 and torch.equal(exported[name], tensor.bfloat16()), name
    again, _, other = reload(folder)
    assert same(numbers(policy, optimizer), numbers(again, other))
    assert other.param_groups[0]["lr"] == 1e-3 and other.param_groups[0]["weight_decay"] == 0.01
    step_on(policy, optimizer, 5)
    step_on(again, other, 5)
    assert same(numbers(policy, optimizer), numbers(again, other))


def test_an_optimizer_that_has_not_stepped_stays_one(tmp_path):
    policy, tokenizer, optimizer = trained(0)
    folder = save(tmp_path, 0, policy, tokenizer, optimizer)
    assert not optimizer.state and not reload(folder)[2].state


def tied():
    config = Qwen3Config(
        vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
    )
    config.update({"num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True})
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def test_the_export_in_several_files_and_tied_weights_once(tmp_path, monkeypatch):
    policy, limit, held = tied(), 40_000, []
    monkeypatch.setattr(checkpoint, "EXPORT_FILE", limit)
    real = checkpoint.save_file
    monkeypatch.setattr(
        checkpoint, "save_file", lambda t, *a, **k: (held.append([x.nbytes for x in t.values()]), real(t, *a, **k))
    )
    beats = []
    checkpoint.export(policy, trained(0)[1], tmp_path, torch.float32, lambda: beats.append(1))
    assert len(held) > 2 and all(sum(sizes) <= limit or len(sizes) == 1 for sizes in held)
    weight_map = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    assert "lm_head.weight" not in weight_map and set(weight_map) == {n for n, _ in policy.named_parameters()}
    assert len(beats) == len(weight_map)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(policy.parameters(), again.parameters(), strict=True))
    ids = torch.arange(20)[None]
    assert torch.equal(policy(ids).logits, again(ids).logits)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["Qwen3ForCausalLM"]


def in_shards(given: Path, expected: Path, out: Path, device: str = "cpu") -> None:
    """A rank: what one process saved is loaded in shards, trained, saved in shards."""
    import processes

    processes.join(device, sharded=True)
    policy, tokenizer = load_policy(str(given), device, torch.float32)
    policy = shard(policy, torch.float32)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1.0)
    checkpoint.load(given, policy, optimizer, 1e-3, 0.01)
    assert same(numbers(policy, optimizer), torch.load(expected))
    step_on(policy, optimizer, 7)
    save(out, 3, policy, tokenizer, optimizer)
    found = numbers(policy, optimizer)
    if processes.RANK == 0:
        torch.save(found, out / "numbers.pt")
    processes.leave()


def test_one_process_then_two_then_one(tmp_path):
    policy, tokenizer, optimizer = trained()
    given = save(tmp_path, 2, policy, tokenizer, optimizer)
    torch.save(numbers(policy, optimizer), tmp_path / "given.pt")
    two = ranks.start(2, in_shards, given, tmp_path / "given.pt", tmp_path, log=tmp_path)
    assert ranks.finish(two) == [0, 0], (tmp_path / "0.txt").read_text() + (tmp_path / "1.txt").read_text()
    folder = tmp_path / "checkpoints" / "step_000003"
    assert len(list((folder / "train").glob("*.distcp"))) == 2
    again, _, other = reload(folder)
    assert same(numbers(again, other), torch.load(tmp_path / "numbers.pt"))
    step_on(policy, optimizer, 7)  # the same step on one process
    for name, value in numbers(again, other).items():
        torch.testing.assert_close(value, numbers(policy, optimizer)[name], atol=1e-6, rtol=1e-5)


@pytest.mark.gpu
def test_a_gpu_goes_on_from_a_cpu(tmp_path):
    policy, tokenizer, optimizer = trained()
    given = save(tmp_path, 2, policy, tokenizer, optimizer)
    torch.save(numbers(policy, optimizer), tmp_path / "given.pt")
    one = ranks.start(1, in_shards, given, tmp_path / "given.pt", tmp_path, "cuda", log=tmp_path)
    assert ranks.finish(one) == [0], (tmp_path / "0.txt").read_text()
    again, _, other = reload(tmp_path / "checkpoints" / "step_000003")
    assert same(numbers(again, other), torch.load(tmp_path / "numbers.pt"))
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoints" / "step_000003")
    assert all(torch.equal(a, b.bfloat16()) for a, b in zip(exported.parameters(), again.parameters(), strict=True))


def test_the_last_two_are_kept_and_only_whole_ones_count(tmp_path):
    what = trained()
    for step in (2, 4, 6):
        save(tmp_path, step, *what)
    names = [folder.name for folder in checkpoint.checkpoints(tmp_path)]
    assert names == ["step_000004", "step_000006"] == sorted(f.name for f in (tmp_path / "checkpoints").iterdir())
    (tmp_path / "checkpoints" / "step_000006" / "state.json").unlink()  # as a copy that was cut short
    (tmp_path / "checkpoints" / ".step_000008").mkdir()  # as a process that was killed while it saved
    assert [folder.name for folder in checkpoint.checkpoints(tmp_path)] == ["step_000004"]
    save(tmp_path, 8, *what)
    assert [folder.name for folder in checkpoint.checkpoints(tmp_path)] == ["step_000004", "step_000008"]


@pytest.mark.parametrize("part", ["shards", "export"])
def test_a_disk_that_refuses_leaves_the_checkpoint_before(tmp_path, monkeypatch, part):
    policy, tokenizer, optimizer = trained()
    folder = save(tmp_path, 2, policy, tokenizer, optimizer)
    before = {f: f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    if part == "export":
        monkeypatch.setattr(checkpoint.dcp, "save", lambda *_, **__: None)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))  # Python ignores the signal: writes fail with EFBIG
    try:
        with pytest.raises(checkpoint.RunError, match="step 4 could not be written.*File too large.*--resume"):
            save(tmp_path, 4, policy, tokenizer, optimizer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(f.name for f in (tmp_path / "checkpoints").iterdir()) == ["step_000002"]
    assert before == {f: f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_the_older_of_two_makes_way(tmp_path, monkeypatch):
    policy, tokenizer, optimizer = trained()
    for step in (2, 4):
        save(tmp_path, step, policy, tokenizer, optimizer)
    size = 14 * sum(p.numel() for p in policy.parameters())

    def free(_):
        there = len(checkpoint.checkpoints(tmp_path))
        return type("Usage", (), {"free": 2**20 + 1.05 * size * (2.1 - there)})

    monkeypatch.setattr(checkpoint.shutil, "disk_usage", free)
    checkpoint.make_room(tmp_path, policy, torch.bfloat16)
    assert [folder.name for folder in checkpoint.checkpoints(tmp_path)] == ["step_000004"]
    with pytest.raises(checkpoint.RunError, match="GiB free"):
        checkpoint.make_room(tmp_path, policy, torch.float32)  # 16 bytes a weight do not fit into 1.1 x 14
    assert [folder.name for folder in checkpoint.checkpoints(tmp_path)] == ["step_000004"]


def test_broken_files_are_named(tmp_path):
    folder = save(tmp_path, 2, *trained())
    (shards,) = (folder / "train").glob("*.distcp")
    whole = shards.read_bytes()
    shards.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(checkpoint.RunError, match="step_000002 is damaged.*goes on from the one before"):
        reload(folder)
    shards.unlink()
    with pytest.raises(checkpoint.RunError, match="step_000002 is damaged"):
        reload(folder)
    shards.write_bytes(whole)
    reload(folder)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-100])
    with pytest.raises(ModelError, match="step_000002"):
        reload(folder)


def test_history_of_updates(tmp_path):
    lines = [{"step": -1, "header": {}}, {"step": 0, "eval/correct": 0.5}]
    for step, (rows, skipped, norm) in enumerate([(4, 0, 0.5), (0, 0, 0.0), (4, 1, None), (4, 1, 9.0)], 1):
        lines.append({"step": step, "policy/rows": rows, "policy/skipped": skipped, "policy/grad_norm": norm})
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert logbook.history(tmp_path) == ([0.5, 9.0], 2, {0})
