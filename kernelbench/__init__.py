"""The benchmark: what a task is, and where tasks come from.

    load_tasks("level1")                 our own tasks of a level (level1, level2, level3)
    load_tasks("level2/3")               one of them, by number or by "level2/3_Name"
    load_tasks("toy/train:64")           64 generated small tasks (toy.py); held out: toy/test:64; "toy": toy/test:256
    load_tasks("toy/test/17")            one of those
    load_tasks("my_task.py")             a file in KernelBench's format
    load_tasks("my_tasks")               a folder of such files, or of folders of them
    load_tasks("KernelBench")            a checkout of KernelBench: the repository, its KernelBench/, or a level of it
    load_tasks("level_1.parquet")        a parquet file, or a folder of such: KernelBench's (name, code; level, problem_id)
                                         or drkernel-rl-data's (reward_model.ground_truth, extra_info.uuid)
    load_tasks("hf:OWNER/NAME")          those of a data set on the hub (ScalingIntelligence/KernelBench,
                                         hkust-nlp/drkernel-rl-data), downloaded once into HF_HOME

After a folder, a parquet file or a data set may stand /<level or split>, /<number>, /<name> or /<level>/<number>:
KernelBench/level1/19 and hf:ScalingIntelligence/KernelBench/level_1/19 are both level1/19_ReLU. Our own levels go
first: write ./level1 for another folder of that name.

KernelBench's format: top-level `class Model`, `get_inputs()`, `get_init_inputs()`. Our own task files also hold a dict
`SMALL` of sizes that replace the module's constants on a machine without a GPU; so their get_inputs and get_init_inputs
read the constants when called. A file that is not in the format is an error; such rows of a parquet are left out, with
a line on stderr, unless none is left.

Nothing is executed here (tasks are checked by AST only), and neither torch nor triton is imported.
"""

import ast
import hashlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Task", "TaskError", "load_tasks"]

HERE = Path(__file__).resolve().parent
LEVELS = ("level1", "level2", "level3")
NEEDED = {"class Model": ast.ClassDef, "get_inputs()": ast.FunctionDef, "get_init_inputs()": ast.FunctionDef}
CHOICES = (
    "level1, level2, level3, level1/<number>, toy/train:<N>, toy/test:<N>, a .py file, a folder of .py files, "
    "a .parquet file, or hf:<owner>/<data set>"
)


class TaskError(ValueError):
    """A task that cannot be loaded; the text is the sentence that the user reads."""


@dataclass(frozen=True)
class Task:
    """One problem: `name` ("level1/2_Softmax") is unique in a list, `source` is text in KernelBench's format."""

    name: str
    source: str

    @property
    def key(self) -> str:
        """16 hex digits that stand for the source, whatever the task is called."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


def load_tasks(*specs: str, device: str = "cpu", seed: int = 0) -> list[Task]:
    """The tasks that the specs name (see the module's docstring), in order, each once.

    `device` ("cpu" or "cuda") sets the sizes of toy tasks, `seed` picks them. Raises TaskError when a spec is unknown,
    finds nothing, or finds a source that is not in KernelBench's format.
    """
    tasks: dict[str, Task] = {}
    for spec in specs:
        for task in _load(str(spec).strip(), device, seed):
            if tasks.setdefault(task.name, task) != task:
                raise TaskError(f"Two different tasks are called {task.name!r}: rename one of their files or folders.")
    if not tasks:
        raise TaskError(f"No task was asked for: name at least one of {CHOICES}.")
    return list(tasks.values())


def _load(spec: str, device: str, seed: int) -> Iterable[Task]:
    level, _, which = spec.partition("/")
    if level in LEVELS:
        return _from_files(_files(HERE / level), which, level)
    if spec == "toy" or spec.startswith("toy/"):
        return _toy(spec, device, seed)
    if spec.startswith("hf:"):
        return _hub(spec)
    path = Path(spec).expanduser()
    if path.is_file() and path.suffix != ".parquet":
        name = f"{path.parent.name}/{path.stem}" if _is_level(path.parent) else path.stem
        return [_read(path, name)]
    for base in (path, *path.parents[:2]):
        which = "" if base == path else path.relative_to(base).as_posix()
        if base.is_file() and base.suffix == ".parquet":
            return _from_parquet([base], which, str(base))
        if base.is_dir() and (base == path or base.name.strip(".")):  # a mistyped name is not looked for in all of "."
            if files := _files(base):
                return _from_files(files, which, str(base))
            if parquets := _parquets(base):
                return _from_parquet(parquets, which, str(base))
            if base == path:
                raise TaskError(f"The folder {spec!r} holds no .py file: name one of files in KernelBench's format.")
            break
    if path.suffix in (".py", ".parquet") or spec.startswith((".", "/", "~")):
        raise TaskError(f"There is no file or folder {spec!r}: check the path, or name one of {CHOICES}.")
    raise TaskError(f"Unknown task {spec!r}: name one of {CHOICES}.")


def _toy(spec: str, device: str, seed: int) -> list[Task]:
    from kernelbench import toy

    match = re.fullmatch(r"toy/(train|test)([:/])(\d+)", "toy/test:256" if spec == "toy" else spec)
    if not match:
        raise TaskError(
            f"Unknown toy task {spec!r}: write toy/train:<N> or toy/test:<N> for N tasks, toy/test/<index> for one."
        )
    split, kind, number = match[1], match[2], int(match[3])
    if kind == ":" and number < 1:
        raise TaskError(f"{spec!r} asks for zero tasks: write toy/{split}:<N> with N of at least 1.")
    indices = range(number) if kind == ":" else [number]
    return [toy.make(split, seed, index, device).task for index in indices]


def _files(folder: Path) -> dict[str, Path]:
    """Task files by the task's name: those of the levels of a checkout, else of the folder, else of its folders."""
    levels, checkout = (filter(_is_level, home.glob("*/")) for home in (folder, folder / "KernelBench"))
    for folders in (levels, [folder], checkout, folder.glob("[!._]*/")):
        if paths := [p for d in folders for p in d.glob("[!._]*.py")]:
            return {f"{p.parent.resolve().name}/{p.stem}": p for p in sorted(paths, key=_natural)}
    return {}


def _is_level(folder: Path) -> bool:
    return re.fullmatch(r"level_?\d+", folder.name) is not None


def _from_files(files: dict[str, Path], which: str, where: str) -> list[Task]:
    return [_read(files[name], name) for name in _chosen(files, which, where)]


def _hub(spec: str) -> list[Task]:
    import huggingface_hub
    from huggingface_hub import errors

    match = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)(?:/(.*))?", spec)
    if not match:
        raise TaskError(f"Unknown data set {spec!r}: write hf:<owner>/<name>, hf:<owner>/<name>/<split> or the like.")
    name, which = match[1], match[2] or ""
    try:
        folder = Path(huggingface_hub.snapshot_download(name, repo_type="dataset", allow_patterns="*.parquet"))
    except (OSError, errors.EntryNotFoundError, errors.HTTPError, errors.HFValidationError) as error:
        raise TaskError(
            f"The data set {name} is neither in the hub's cache nor within reach ({type(error).__name__}): check its name, "
            f"or run `hf download --repo-type dataset {name}` where there is a network and bring its cache (HF_HOME) here."
        ) from error
    return _from_parquet(_parquets(folder), which, f"hf:{name}")


def _parquets(folder: Path) -> list[Path]:
    return sorted((p for depth in ("", "*/", "*/*/") for p in folder.glob(f"{depth}*.parquet")), key=_natural)


def _split(path: Path) -> str:
    """The name of the split that a file holds: level_1 for level_1-00000-of-00001.parquet."""
    return re.sub(r"-\d+-of-\d+$", "", path.stem)


def _from_parquet(paths: list[Path], which: str, where: str) -> list[Task]:
    first, _, rest = map(_plain, which.partition("/"))
    if split := [p for p in paths if first in (_plain(_split(p)), _plain(p.parent.name))]:
        paths, which = split, rest
    rows = [row for path in paths for row in _rows(path)]
    if not rows:
        raise TaskError(f"{where!r} has no rows in parquet files: download it again, or name another.")
    if which:
        chosen = set(_chosen([name for name, _ in rows], which, where))
        rows = [row for row in rows if row[0] in chosen]
    tasks: dict[str, Task] = {}
    faults: list[TaskError] = []
    for name, source in rows:
        try:
            task = _checked(Task(name, source), f"{name} of {where}")
        except TaskError as fault:
            faults.append(fault)
            continue
        twin = 1
        while tasks.setdefault(task.name, task).source != source:  # two sources of one name
            task = Task(f"{name}.{(twin := twin + 1)}", source)
    if not tasks:
        raise TaskError(f"No row of {where} (of {len(rows)} asked for) holds a task; of the first: {faults[0]}")
    if faults:
        print(f"{where}: {len(faults)} of {len(rows)} rows hold no task and are left out.", file=sys.stderr)
    return sorted(tasks.values(), key=lambda task: _natural(task.name))


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    """Name and source of each row; only these columns are read, and not all rows at once."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            there = {file.schema.column(i).path for i in range(len(file.schema))}
            ours = {"name", "code", "level", "problem_id"} & there
            if "reward_model.ground_truth" in there:
                ours = {"reward_model.ground_truth", "extra_info.uuid"} & there
            elif missing := {"name", "code"} - ours:
                raise TaskError(
                    f"{str(path)!r} has no column {' or '.join(sorted(missing))}: it needs name and code, as KernelBench "
                    f"has, or reward_model.ground_truth and extra_info.uuid, as drkernel-rl-data has."
                )
            for batch in file.iter_batches(1024, columns=sorted(ours)):
                for row in batch.to_pylist():
                    yield _row(row, _split(path))
    except (pyarrow.ArrowException, OSError) as error:
        raise TaskError(f"{str(path)!r} cannot be read as parquet ({error}): download it again.") from error


def _row(row: dict, split: str) -> tuple[str, str]:
    if "reward_model" in row:
        source = (row["reward_model"] or {}).get("ground_truth") or ""
        name = (row.get("extra_info") or {}).get("uuid")
        return str(name or Task("", source).key), str(source)
    name, number, level = str(row["name"]).removesuffix(".py"), row.get("problem_id"), row.get("level")
    if number is not None and not name.startswith(f"{number}_"):
        name = f"{number}_{name}"
    return f"{split if level is None else f'level{level}'}/{name}", str(row["code"] or "")


def _chosen(names: Iterable[str], which: str, where: str) -> list[str]:
    """The names that `which` stands for: level1/19_ReLU for level1, 19, 19_ReLU, ReLU, level1/19 and so on."""
    wanted = _plain(which.strip("/").removesuffix(".py"))
    chosen = [name for name in names if not wanted or wanted in _labels(_plain(name))]
    if not chosen:
        some = [name.removeprefix(f"{where}/") for name in names]
        held = ", ".join(some[:12]) + (f" and so on, {len(some)} in all" if len(some) > 12 else "")
        raise TaskError(f"There is no task {which!r} in {where}: it holds {held}.")
    return chosen


def _labels(name: str) -> set[str]:
    level, _, stem = name.rpartition("/")
    number, _, title = stem.partition("_")
    short = [stem, number, title] if number.isdigit() else [stem]
    return {level, *short, *(f"{level}/{label}" for label in short)}


def _plain(label: str) -> str:
    """KernelBench's level_1 (a split) is its level1 (a folder)."""
    return re.sub(r"^level_(?=\d)", "level", label)


def _natural(path: Path | str) -> list:
    """A sort key in which 2_X precedes 10_X."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(path)) if part]


def _read(path: Path, name: str) -> Task:
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"The task file {str(path)!r} cannot be read ({error}).") from error
    return _checked(Task(name, source), str(path))


def _checked(task: Task, where: str) -> Task:
    """The task, if its source parses and defines what KernelBench's format asks for at its top level."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about "\d" and the like, which is no matter here
            body = ast.parse(task.source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"The task {where} is not valid Python ({error}): mend it before it can be judged.") from error
    found = {(type(node), node.name) for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    missing = [
        what for what, kind in NEEDED.items() if (kind, what.removeprefix("class ").removesuffix("()")) not in found
    ]
    if missing:
        raise TaskError(
            f"The task {where} does not define {' or '.join(missing)} at its top level: KernelBench's format needs "
            f"class Model, get_inputs() (the list of forward's arguments) and get_init_inputs() (the list of Model's)."
        )
    return task
