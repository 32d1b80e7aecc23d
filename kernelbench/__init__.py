"""The benchmark: what a task is, and where tasks come from.

    load_tasks("level1")                 our own tasks of a level (level1, level2, level3)
    load_tasks("level2/3")               one of them, by number or by "level2/3_Name"
    load_tasks("toy/train:64")           64 generated small tasks (toy.py); held out: toy/test:64; "toy": toy/test:256
    load_tasks("toy/test/17")            one of those
    load_tasks("my_task.py")             a file in KernelBench's format
    load_tasks("KernelBench/level1")     a folder of such files, or of folders of them
    load_tasks("level_1.parquet")        the hub's parquet (columns name and code; level and problem_id if there)

KernelBench's format: top-level `class Model`, `get_inputs()`, `get_init_inputs()`. Our own task files also hold a dict
`SMALL` of sizes that replace the module's constants on a machine without a GPU; so their get_inputs and get_init_inputs
read the constants when called.

Nothing is executed here (tasks are checked by AST only), and neither torch nor triton is imported.
"""

import ast
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Task", "TaskError", "load_tasks"]

HERE = Path(__file__).resolve().parent
LEVELS = ("level1", "level2", "level3")
NEEDED = {"class Model": ast.ClassDef, "get_inputs()": ast.FunctionDef, "get_init_inputs()": ast.FunctionDef}
CHOICES = (
    "level1, level2, level3, level1/<number>, toy/train:<N>, toy/test:<N>, "
    "a .py file, a folder of .py files, or a .parquet file"
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
        return _own(level, which)
    if spec == "toy" or spec.startswith("toy/"):
        return _toy(spec, device, seed)
    path = Path(spec).expanduser()
    if path.suffix == ".parquet" and path.is_file():
        return _parquet(path)
    if path.is_file():
        return [_read(path, path.stem)]
    if path.is_dir():
        return _folder(path)
    if path.suffix in (".py", ".parquet") or spec.startswith((".", "/", "~")):
        raise TaskError(f"There is no file or folder {spec!r}: check the path, or name one of {CHOICES}.")
    raise TaskError(f"Unknown task {spec!r}: name one of {CHOICES}.")


def _own(level: str, which: str) -> list[Task]:
    paths = _task_files(HERE / level)
    if which:
        which = which.removesuffix(".py")
        chosen = [p for p in paths if which in (p.stem, p.stem.partition("_")[0], p.stem.partition("_")[2])]
        if not chosen:
            raise TaskError(f"There is no task {which!r} in {level}: it holds {', '.join(p.stem for p in paths)}.")
        paths = chosen
    return [_read(path, f"{level}/{path.stem}") for path in paths]


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


def _folder(folder: Path) -> list[Task]:
    name = folder.resolve().name
    tasks = [_read(path, f"{name}/{path.stem}") for path in _task_files(folder)]
    if not tasks:  # a checkout: level1/, level2/, ...
        inner = sorted((d for d in folder.iterdir() if d.is_dir() and not d.name.startswith((".", "_"))), key=_natural)
        tasks = [_read(path, f"{d.name}/{path.stem}") for d in inner for path in _task_files(d)]
    if not tasks:
        raise TaskError(
            f"The folder {str(folder)!r} holds no .py file: point at a folder of files in KernelBench's format."
        )
    return tasks


def _parquet(path: Path) -> list[Task]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise TaskError(f"{str(path)!r} cannot be read as parquet ({error}): download it again.") from error
    if not rows:
        raise TaskError(f"{str(path)!r} has no rows: download it again, or name another file.")
    if missing := {"name", "code"} - rows[0].keys():
        raise TaskError(
            f"{str(path)!r} has no column {' or '.join(sorted(missing))}: it needs the columns name and code."
        )
    tasks = []
    for row in rows:
        name, number, level = row["name"], row.get("problem_id"), row.get("level")
        if number is not None and not name.startswith(f"{number}_"):
            name = f"{number}_{name}"
        name = f"{path.stem if level is None else f'level{level}'}/{name}"
        tasks.append(_checked(Task(name, row["code"]), f"{path}, {name}"))
    return sorted(tasks, key=lambda task: _natural(task.name))


def _task_files(folder: Path) -> list[Path]:
    return sorted((p for p in folder.glob("*.py") if not p.name.startswith((".", "_"))), key=_natural)


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
        body = ast.parse(task.source).body
    except (SyntaxError, ValueError) as error:
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
