"""The house: rooms keep to themselves, files stay short, and what is public says what it does."""

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import laconic

PACKAGE = Path(laconic.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LONGEST = 1000

#: What says nothing that the name does not say.
FILLERS = re.compile(r"(do|see) (it|this|that|the module|above|below)\b.*|((an?|the) )?\S*", re.IGNORECASE)


class Module(NamedTuple):
    """A file of the package: where it is, the room it is in, and its syntax."""

    path: str
    room: str
    tree: ast.Module
    n_lines: int


@functools.cache
def modules():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        text = path.read_text()
        found.append(Module(name.as_posix(), name.parts[0].removesuffix(".py"), ast.parse(text), text.count("\n")))
    return found


@functools.cache
def rooms():
    return {module.room for module in modules()}


def imports(tree):
    """Every import of laconic, wherever it is: (line, module, name or None, what it is called here)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "laconic":
                    yield node.lineno, alias.name, None, alias.asname or alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "laconic":
            for alias in node.names:
                yield node.lineno, node.module, alias.name, alias.asname or alias.name


def private(name):
    return name.startswith("_") and not name.startswith("__")


def roots(module):
    """Lines that import the package itself, of which every room is a part; inside functions and for types, too."""
    for line, source, name, _ in imports(module.tree):
        if source == "laconic" and name not in rooms():
            yield f"{module.path}:{line} imports {name or 'laconic'} from the root package"


def intrusions(module):
    """Lines that read underscore names of another room."""
    here = {}
    for line, source, name, alias in imports(module.tree):
        parts = [*source.split("."), *([name] if name else [])]
        room = parts[1] if len(parts) > 1 else ""
        here[alias] = room
        if room != module.room and any(private(part) for part in parts[2:]):
            yield f"{module.path}:{line} imports {'.'.join(parts)}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and private(node.attr):
            name = ast.unparse(node.value)
            if name in here and here[name] != module.room:
                yield f"{module.path}:{node.lineno} reads {name}.{node.attr}"


def undescribed(module):
    """Public functions, methods and classes whose docstring is missing or says nothing."""

    def look(node, inside):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (*FUNCTIONS, ast.ClassDef)) or child.name.startswith("_"):
                continue
            name = f"{inside}{child.name}"
            if not says_something(child):
                yield f"{module.path}:{child.lineno} {name}: {ast.get_docstring(child)!r}"
            if isinstance(child, ast.ClassDef):
                yield from look(child, f"{name}.")

    yield from look(module.tree, "")


def says_something(node):
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    if decorators & {"overload", "override", "setter"}:
        return True
    first = (ast.get_docstring(node) or "").split("\n")[0]
    is_formula = re.search(r"[=^/(\d]|<-|``", first)
    return bool(is_formula) or not FILLERS.fullmatch(first)


def found_by(rule):
    return [line for module in modules() for line in rule(module) if module.path not in ("__init__.py", "__main__.py")]


def test_the_whole_package_is_looked_at():
    assert len(modules()) > 100
    assert {"cli", "engine", "features", "learners", "protocol", "testing", "_validate"} <= rooms()


def test_no_room_imports_the_root_package():
    assert found_by(roots) == []


def test_no_room_reads_underscore_names_of_another():
    assert found_by(intrusions) == []


def test_files_are_short():
    lengths = {module.path: module.n_lines for module in modules()}
    assert not {path: n for path, n in lengths.items() if n > LONGEST}


def test_what_is_public_says_what_it_does():
    assert found_by(undescribed) == []


# The rules themselves ------------------------------------------------------------------------------------------------


def breaks(rule, text):
    return len([*rule(Module("offline/new.py", "offline", ast.parse(text), text.count("\n")))])


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("import laconic", 1),
        ("import laconic as lc", 1),
        ("from laconic import Network", 1),
        ("def f():\n    from laconic import simulate", 1),
        ("if TYPE_CHECKING:\n    from laconic import Agent, Trace", 2),
        ("from laconic import _validate\nimport laconic.features\nfrom laconic.network import Network", 0),
    ],
)
def test_the_rule_about_the_root_package(text, n):
    assert breaks(roots, text) == n


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("from laconic.network import _csr", 1),
        ("from laconic.engine._hidden import run", 1),
        ("from laconic import network\nnetwork._csr()", 1),
        ("from laconic.engine import run as engine\nengine._plan", 1),
        ("import laconic.engine.run\nlaconic.engine.run._plan", 1),
        ("from laconic.offline.rls import _solve\nfrom laconic.offline import rls\nrls._solve", 0),
        ("from laconic._validate import integer\nfrom laconic import _files\n_files.written_whole", 0),
        ("self._own\nnetwork.__name__", 0),
    ],
)
def test_the_rule_about_underscore_names(text, n):
    assert breaks(intrusions, text) == n


@pytest.mark.parametrize(
    ("docstring", "n"),
    [
        ('"""Do it."""', 1),
        ('"""See the module."""', 1),
        ('"""A question."""', 1),
        ('"""Do it, in the main thread."""', 1),
        ("pass", 1),
        ('"""q = 2^bits."""', 0),
        ('"""dl/dm."""', 0),
        ('"""Write."""', 1),
        ('"""Messages disappear."""', 0),
    ],
)
def test_the_rule_about_docstrings(docstring, n):
    assert breaks(undescribed, f"def f():\n    {docstring}") == n
    assert breaks(undescribed, f"class A:\n    '''A class to try.'''\n    def f(self):\n        {docstring}") == n
    assert breaks(undescribed, f"def _f():\n    {docstring}") == 0


def test_every_room_is_in_the_map_of_the_house():
    page = Path(__file__).parents[1] / "docs" / "house.md"
    if not page.exists():
        pytest.skip("the documentation is not here: this is an installed package")
    tree = page.read_text().split("## One sample")[0]
    missing = [room for room in sorted(rooms() - {"__init__", "__main__", "py"}) if not re.search(rf"\b{room}\b", tree)]
    assert missing == []


def test_no_two_test_files_share_a_name():
    # They are imported by it, wherever they are: pytest would run one of the two, and refuse the other.
    names = sorted(path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "__init__.py")
    assert len(names) == len(set(names))
