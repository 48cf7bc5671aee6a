"""Every code block of README, CONTRIBUTING and docs/ is run, or at least read by the code that it is meant for.

Python blocks of a page are executed in order, in one namespace. Each command line is parsed by the program itself, and
the quick ones are run. TOML and JSON are decoded by what reads them. A block that cannot be treated so has a comment
`<!-- not run: REASON -->` on the line above it.
"""

import ast
import importlib
import json
import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.main import get_command

from anyhull import Mission, Pilot, Thruster, Vessel, hold, schema, simulate
from anyhull.cli import app, main
from anyhull.onboard import Setup
from anyhull.onboard.messages import decode

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None


def blocks(text, page):
    """The fenced blocks of a page."""
    return [
        Block(page, text[: found.start("text")].count("\n"), found["language"], found["text"], found["reason"])
        for found in FENCE.finditer(text)
    ]


BLOCKS = [block for path in PAGES for block in blocks(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))]


def of(*languages):
    """Test cases: the blocks in these languages."""
    found = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", found, ids=[f"{block.page}:{block.line}" for block in found])


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """A short log, as `anyhull pilot` saves one."""
    vessel = Vessel.load("roboat-2")
    log = simulate(Pilot.load(vessel=vessel), vessel, hold(duration=2))
    return log.save(tmp_path_factory.mktemp("log") / "pilot.npz")


@pytest.fixture
def folder(tmp_path, monkeypatch, log_file):
    """A clone's folder as a reader has it, with a boat, a mission and a log of his own."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "examples" / "boat.toml", tmp_path / "boat.toml")
    shutil.copy(ROOT / "examples" / "missions" / "lawnmower.toml", tmp_path / "mission.toml")
    shutil.copy(log_file, tmp_path / "pilot.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_fence_is_a_block_with_a_language_that_a_test_reads():
    fences = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("```") for path in PAGES}
    for page, count in fences.items():
        assert count == 2 * sum(block.page == page for block in BLOCKS), page
    # A block without a language is no code: a diagram, a table of bytes.
    unread = [block for block in BLOCKS if block.language not in ("python", "sh", "toml", "json", "")]
    disguised = [block for block in BLOCKS if not block.language and re.search(r"^\s*(anyhull|pip|make) ", block.text)]
    assert unread + disguised == []


def test_a_marker_with_a_reason_is_found_and_one_without_is_none():
    text = "<!-- not run: a boat is needed -->\n```sh\nls\n```\n<!-- not run: -->\n```sh\nls\n```\n"
    assert [block.reason for block in blocks(text, "page")] == ["a boat is needed", None]


# Python ---------------------------------------------------------------------------------------------------------------

PRELUDE = {
    "docs/export.md": """
from anyhull.cli import main
assert main(["export", "field", "--onnx", "field.onnx"]) == 0
import numpy
left = [3]
def running():
    left[0] -= 1
    return left[0] >= 0
def measure():
    return numpy.zeros((1, 3)), numpy.zeros((1, 3)), numpy.zeros((1, 11, 6))
""",
}
"""What a page takes as given: the export of the policy, and the boat of its loop, for three periods."""


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS if block.language == "python"}))
def test_the_python_of_a_page_runs_in_order(page, folder):
    namespace = {"__name__": "__main__"}
    exec(PRELUDE.get(page, ""), namespace)
    for block in BLOCKS:
        if (block.page, block.language) == (page, "python"):
            tree = ast.parse(block.text, f"{page}:{block.line}")
            if block.reason:  # its imports at least are run
                tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            exec(compile(tree, f"{page}:{block.line}", "exec"), namespace)


# Command lines --------------------------------------------------------------------------------------------------------

EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

QUICK = re.compile(r"vessels|key |log pilot\.npz|lab --out|--version|study jobs|export field |.*--dry-run")
"""Commands that are run. The others are parsed alone: they take minutes, a boat, or a second terminal."""


def lines(text):
    """The commands of a block: comments removed, continued lines joined, chains taken apart."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            yield words[:end]
            words = words[end + 1 :]


def bare(words):
    """A command without what only says where or as whom it is run."""
    while words and (words[0] in ("sudo", "srun") or re.match(r"[A-Z_]+=", words[0])):
        words = words[1:]
    return [word.replace("/etc/anyhull/", "").replace("/opt/anyhull/bin/", "") for word in words]


def parse(arguments):
    """Raise for a command line of `anyhull` that it would refuse: commands, options, values."""
    command: Any = get_command(app)
    context, words = None, list(arguments)
    if words == ["--version"]:
        return
    while hasattr(command, "resolve_command"):
        context = command.make_context("anyhull", list(words), parent=context)
        _, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(command.name, list(words), parent=context)


def check(words):
    """Check one command line, and run it where that is quick. False for one that is not of this repository."""
    program, arguments = words[0], words[1:]
    for word in arguments:
        if word.startswith(("examples/", "benchmarks/")) and not word.endswith("-h200.json"):
            assert (ROOT / word).exists(), word
    if program == "anyhull":
        parse(arguments)
        if QUICK.match(" ".join(arguments)):
            assert main(arguments) == 0
    elif program == "make":
        assert set(arguments) <= TARGETS
    elif program == "pip":
        named = re.findall(r"\[([\w,]+)\]", " ".join(arguments))
        assert set(",".join(named).split(",")) - {""} <= EXTRAS
        return any(word.startswith((".", "anyhull")) for word in arguments)
    elif program == "python" and arguments[0].endswith(".py"):
        script = next(path for path in (ROOT / arguments[0], ROOT / "benchmarks" / arguments[0]) if path.exists())
        for option in (word for word in arguments if word.startswith("--")):
            assert f'"{option}"' in script.read_text(encoding="utf-8"), f"{arguments[0]} {option}"
    elif program == "cp":
        shutil.copy(*arguments)
    else:
        return program in (".", "cd") or words[:3] == ["python3", "-m", "venv"]
    return True


@of("sh")
def test_a_command_line_is_one_that_its_program_accepts(block, folder):
    strange = [words for words in map(bare, lines(block.text)) if words and not check(words)]
    assert bool(strange) == bool(block.reason), strange


@pytest.mark.parametrize(
    "line",
    [
        "anyhull simulate --vesel boat.toml",
        "anyhull sail boat.toml",
        "anyhull vessels show",
        "anyhull simulate --seed one",
        "anyhull vessels show examples/boat-z.toml",
        "make coffee",
        "pip install '.[gpu]'",
        "python soak.py --minutes 3",
    ],
)
def test_a_line_that_is_wrong_is_refused(line, folder):
    with pytest.raises(Exception, match=r"(?i)no such|missing|valid integer|boat-z|coffee|gpu|minutes"):
        check(shlex.split(line))


INLINE = re.compile(r"`(anyhull [a-z]+(?: [^`]*)?)`")


@pytest.mark.parametrize("path", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])
def test_a_command_within_a_sentence_is_one_of_the_program(path):
    """Its command and options exist; arguments that the sentence leaves out may be missing."""
    root: Any = get_command(app)
    for line in INLINE.findall(path.read_text(encoding="utf-8")):
        words = shlex.split(line)[1:]
        command = root.commands.get(words[0])
        assert command is not None, line
        if hasattr(command, "commands") and len(words) > 1:
            command = command.commands.get(words[1], command)
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, line


# Files ----------------------------------------------------------------------------------------------------------------


def without(example, content):
    """The text of an example boat without the tables and values that a block has."""
    text = (ROOT / "examples" / example).read_text(encoding="utf-8")
    parts = [part for part in re.split(r"(?m)^(?=\[)", text) if part.split("]")[0].strip("[") not in content]
    for key in content:
        parts[0] = re.sub(rf"(?m)^{key} = .*\n", "", parts[0])
    return "".join(parts)


@of("toml")
def test_toml_is_accepted_by_what_reads_it(block, folder):
    if block.reason:
        with pytest.raises(tomllib.TOMLDecodeError):
            tomllib.loads(block.text)
        return
    content = tomllib.loads(block.text)
    file = Path("block.toml")
    if "waypoints" in content:
        file.write_text(block.text, encoding="utf-8")
        assert Mission.load(file, vessel=Vessel.load("boat.toml")).name == content["name"]
    elif block.page == "docs/missions.md":  # one survey a file
        for part in re.split(r"(?m)^(?=\[)", block.text):
            if part:
                file.write_text(f'coordinates = "local"\n{part}', encoding="utf-8")
                assert Mission.load(file, vessel=Vessel.load("boat.toml")).reference.duration > 0
    elif set(content) == {"thrusters"}:
        assert [schema.decode(Thruster, table, "thrusters").forward for table in content["thrusters"]] == [18.0]
    elif "name" in content:
        file.write_text(block.text, encoding="utf-8")
        assert Setup.load(file).vessel.name == content["name"]
    else:
        kind = content.get("link", {}).get("kind", "udp")
        example = {"udp": "boat.toml", "mavlink": "boat-ardupilot.toml", "ros2": "boat-ros2.toml"}[kind]
        Path("boat.key").write_bytes(bytes(32))
        start = re.search(r"^\[", block.text, re.MULTILINE)
        assert start is not None
        top, tables = block.text[: start.start()], block.text[start.start() :]
        file.write_text(f"{top}\n{without(example, content)}\n{tables}", encoding="utf-8")
        assert Setup.load(file).vessel.name


@of("json")
def test_each_line_of_json_is_a_message(block):
    for line in block.text.splitlines():
        assert decode(line.encode()).session == json.loads(line)["session"]


# The API, notebooks and figures ---------------------------------------------------------------------------------------


def test_the_api_has_every_package_that_declares_public_names():
    """That each name is then on the page is checked where the site is built (docs/site/hooks.py)."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")]
    documented = {name for text in texts for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    declared = [p for p in (ROOT / "src").rglob("__init__.py") if "\n__all__ = " in p.read_text(encoding="utf-8")]
    public = {".".join(path.parent.relative_to(ROOT / "src").parts) for path in declared}
    assert public <= documented
    assert "anyhull" in public


@pytest.fixture(scope="module")
def notebooks():
    """The module by which the site runs notebooks."""
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    try:
        yield importlib.import_module("notebooks")
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_is_stored_without_outputs(path, notebooks, tmp_path, monkeypatch):
    monkeypatch.setenv("ANYHULL_NOTEBOOKS", "small")
    text, pictures = notebooks.page(path, tmp_path)
    assert len(pictures) == 2
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())
    assert all(cell["outputs"] == [] for cell in notebooks.cells(path) if cell["cell_type"] == "code")
    if path.stem == "adaptation":
        # In the mean of the five boats a fixed latent doubles the error at least (docs/results.md: 0.29 and 0.92 cm).
        rows = re.findall(r"^[a-z0-9-]+ +([\d.]+) cm +([\d.]+) cm$", text, re.MULTILINE)
        on, off = np.mean(np.array(rows, float), axis=0)
        assert len(rows) == 5
        assert off > 2 * on
        assert "same actor: True" in text


def test_the_pictures_have_a_ground_of_their_own_and_read_in_both_colour_schemes():
    from PIL import Image

    for path in [*(ROOT / "docs").rglob("*.png"), ROOT / "docs" / "lap.gif"]:
        with Image.open(path) as image:
            pixels = image.convert("RGBA")
            corners = [pixels.getpixel((x, y)) for x in (0, image.width - 1) for y in (0, image.height - 1)]
        assert corners == [(255, 255, 255, 255)] * 4, path
