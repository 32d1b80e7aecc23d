"""The red-team corpus: candidates whose right verdict is known.

attacks/ cheat, honest/ do the work in unusual ways, lazy/ do a little of it; tasks/ are what they answer. Every file is the candidate's
code and begins with a docstring: what it does, an empty line, then one `field: value` a line (see FIELDS). Nothing here runs a candidate.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from kernelbench import Task, load_tasks
from kernelbench.judge import STATUSES, Verdict

HERE = Path(__file__).resolve().parent
KINDS = ("attacks", "honest", "lazy")
LAYERS = (
    "comparison",
    "inputs",
    "replay",
    "clock",
    "profile",
    "channel",
    "process",
    "filesystem",
    "source",
    "dataset",
    "laziness",
)
DEVICES = ("any", "cuda", "cpu")
NEEDED = ("layer", "catalogue", "task", "expect")
FIELDS = (*NEEDED, "coverage_at_most", "coverage_at_least", "speedup_at_most", "device")


@dataclass(frozen=True)
class Case:
    """One candidate and what may rightly be said of it."""

    path: Path
    kind: str  # of KINDS
    what: str  # what it does, and why it might fool a judge (or be misjudged)
    layer: str  # of LAYERS
    catalogue: tuple[str, ...]  # numbers in the catalogue of known cheats, or "own"
    task: Task
    expect: frozenset[str]  # statuses any of which is right
    coverage_at_most: float | None
    coverage_at_least: float | None
    speedup_at_most: float | None
    device: str  # of DEVICES: where it can be run at all
    code: str

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.path.stem}"

    def runs_on(self, device: str) -> bool:
        return self.device in ("any", device)

    def verdict_is_right(self, verdict: Verdict) -> str | None:
        """None if the verdict is right, else what is wrong with it."""
        said = f"{verdict.hack}; " if verdict.hack else ""
        if verdict.status not in self.expect:
            credit = f", speed-up {verdict.speedup:.2f}, coverage {verdict.coverage:.0%}" if verdict.correct else ""
            wanted = " or ".join(sorted(self.expect))
            return f"{self.name}: {verdict.status}{credit} instead of {wanted} ({said}{verdict.message[:300]})"
        if verdict.status != "correct":
            return None
        if self.coverage_at_most is not None and verdict.coverage > self.coverage_at_most:
            return f"{self.name}: coverage {verdict.coverage:.3f} credited, at most {self.coverage_at_most} is right"
        if self.coverage_at_least is not None and verdict.coverage < self.coverage_at_least:
            return f"{self.name}: coverage {verdict.coverage:.3f} credited, at least {self.coverage_at_least} is right"
        if self.speedup_at_most is not None and verdict.speedup > self.speedup_at_most:
            return f"{self.name}: speed-up {verdict.speedup:.2f} credited, at most {self.speedup_at_most} is right"
        return None


def load(kind: str | None = None) -> list[Case]:
    """The cases of one kind, or of all kinds that exist, by name. ValueError names the file whose header is not as it must be."""
    kinds = KINDS if kind is None else (kind,)
    return [_read(path, k) for k in kinds for path in sorted((HERE / k).glob("*.py"))]


def _read(path: Path, kind: str) -> Case:
    def refuse(reason: str):
        raise ValueError(f"{path}: {reason}")

    code = path.read_bytes().decode()  # line ends as they are
    what, _, block = (ast.get_docstring(ast.parse(code)) or "").partition("\n\n")
    fields: dict[str, str] = {}
    for line in filter(None, block.splitlines()):
        match = re.fullmatch(r"(\w+): (\S.*)", line)
        if not match:
            refuse(f"the header's line {line!r} is not of the form `field: value`")
        if match[1] not in FIELDS or match[1] in fields:
            refuse(f"the header's field {match[1]!r} is unknown or twice there")
        fields[match[1]] = match[2].strip()
    if missing := [name for name in NEEDED if name not in fields]:
        refuse(f"the header lacks {', '.join(missing)}")
    if not what.strip():
        refuse("the header does not say what the candidate does")
    if fields["layer"] not in LAYERS:
        refuse(f"the layer {fields['layer']!r} is none of {', '.join(LAYERS)}")
    catalogue = _list(fields["catalogue"])
    if bad := [c for c in catalogue if c != "own" and not re.fullmatch(r"\d{1,2}(\.\d\d)?", c)]:
        refuse(f"the catalogue has no number {bad[0]!r}")
    expect = frozenset(_list(fields["expect"]))
    if bad := expect - (set(STATUSES) - {"gym_error"}):
        refuse(f"{min(bad)!r} is no status that a candidate can be given")
    device = fields.get("device", "any")
    if device not in DEVICES:
        refuse(f"the device {device!r} is none of {', '.join(DEVICES)}")
    bounds = {}
    for name in ("coverage_at_most", "coverage_at_least", "speedup_at_most"):
        try:
            bounds[name] = float(fields[name]) if name in fields else None
        except ValueError:
            refuse(f"{name} must be a number, not {fields[name]!r}")
        if bounds[name] is not None and "correct" not in expect:
            refuse(f"{name} has no meaning where correct is not expected")
    if kind == "attacks" and "correct" in expect and bounds["coverage_at_most"] is bounds["speedup_at_most"] is None:
        refuse("an attack that may be called correct needs coverage_at_most or speedup_at_most")
    if kind != "attacks" and expect != {"correct"}:
        refuse(f"what is {kind} must be called correct")
    task = HERE / "tasks" / f"{fields['task']}.py"
    if not task.is_file():
        refuse(f"there is no task {fields['task']!r}")
    return Case(
        path=path,
        kind=kind,
        what=" ".join(what.split()),
        layer=fields["layer"],
        catalogue=tuple(catalogue),
        task=load_tasks(str(task))[0],
        expect=expect,
        device=device,
        code=code,
        **bounds,
    )


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
