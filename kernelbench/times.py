"""Reference times on disk, one JSON file for each task (its source's hash), GPU, versions, precision and baseline.

What is kept here is shown, written into baseline files and held against new times; it never enters a speed-up: that divides two times
taken side by side in one evaluation.
"""

import contextlib
import hashlib
import json
import os
import secrets
import time
from pathlib import Path

import numpy as np
import torch
import triton

from kernelbench import Task, simulate


def home() -> Path:
    """DRKERNEL_CACHE, else a folder of the user's cache."""
    base = os.environ.get("DRKERNEL_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "drkernel")
    return Path(base).expanduser() / "times"


def about(task: Task, device: str, options) -> dict:
    """What a time depends on. device: the GPU's name; options: a judge.Options."""
    facts = {"task": task.key, "device": device, "torch": torch.__version__, "triton": triton.__version__}
    if device.startswith("simulated"):
        facts["simulator"] = hashlib.sha256(Path(simulate.__file__).read_bytes()).hexdigest()[:16]
    return facts | {"precision": options.precision, "tf32": options.tf32, "baseline": options.baseline}


def _path(folder: str | Path, facts: dict) -> Path:
    return Path(folder) / f"{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]}.json"


def load(folder: str | Path, facts: dict) -> dict | None:
    """What is known of that time: see `figures`. A damaged file is none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        entry = json.loads(_path(folder, facts).read_text())
        if isinstance(entry, dict) and entry.get("about") == facts and entry["ms"]["median"] > 0:
            return entry["ms"]
    return None


def save(folder: str | Path, facts: dict, task: Task, ms: dict):
    write(_path(folder, facts), {"about": facts, "name": task.name, "when": time.time(), "ms": ms}, indent=1)


def write(path: Path, data: dict, indent: int):
    """JSON, atomically: readers and other writers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    draft.write_text(json.dumps(data, indent=indent) + "\n")
    os.replace(draft, path)


def figures(samples: list[list[float]]) -> dict:
    """median, mean, std, min, max of one forward in ms, and how many forwards."""
    x = np.concatenate(samples)
    spread = float(x.std(ddof=1)) if len(x) > 1 else 0.0
    values = {"median": float(np.median(x)), "mean": float(x.mean()), "std": spread}
    return values | {"min": float(x.min()), "max": float(x.max()), "num_trials": len(x)}
