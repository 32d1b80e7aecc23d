"""The static look at a candidate's source: by AST, and only at what no kernel has any business touching."""

import ast

from kernelbench.process import Stop

FORBIDDEN_IMPORTS = {
    "ctypes",
    "gc",
    "subprocess",
    "multiprocessing",
    "socket",
    "signal",
    "cffi",
    "_thread",
    "kernelbench",
    "pty",
    "mmap",
}
FORBIDDEN_CALLS = {
    "os.system",
    "os.fork",
    "os.kill",
    "os._exit",
    "os.popen",
    "os.execv",
    "sys._getframe",
    "sys.settrace",
    "sys.setprofile",
}
PATCHED = {"torch", "triton", "tl", "time", "builtins"}  # assigning to an attribute of these modules


def look(code: str | None, entry: str) -> None:
    """Stop with no_code, compile_error or hack; says nothing about good code."""
    if code is None or not code.strip():
        raise Stop("no_code", f"No complete code block that defines class {entry} was found.")
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        text = code.splitlines()[line - 1].strip() if line and line <= len(code.splitlines()) else ""
        raise Stop("compile_error", f"SyntaxError in line {line}: {getattr(error, 'msg', error)}: {text}") from None
    if not any(isinstance(n, ast.ClassDef) and n.name == entry for n in tree.body):
        raise Stop("no_code", f"The code defines no class {entry} at its top level.")
    for node in ast.walk(tree):
        rule = None
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            rule = next((f"import of {n}" for n in names if n.split(".")[0] in FORBIDDEN_IMPORTS), None)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in FORBIDDEN_CALLS:
            rule = f"call of {ast.unparse(node.func)}"
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                name = ast.unparse(target)
                if (
                    isinstance(target, ast.Attribute)
                    and name.split(".")[0] in PATCHED
                    and not name.startswith("torch.backends.")
                ):
                    rule = f"patching of {name}"
        if rule:
            raise Stop("hack", f"Line {node.lineno}: {rule} has no place in a kernel.", rule)
