"""The order of the rooms, the size of modules, and what the front door promises."""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def architecture():
    """The script that draws the pictures of docs/architecture.md."""
    spec = spec_from_file_location("draw", ROOT / "docs" / "architecture" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_module_imports_from_a_room_below_its_own(architecture):
    assert architecture.against_the_order() == []


def test_every_module_has_a_room_and_no_two_import_each_other(architecture):
    assert [name for name in architecture.modules() if not architecture.room_of(name)] == ["anyhull"]
    assert architecture.cycles() == []
    # The check sees what there is to see: imports inside functions and those for type checking too.
    assert "anyhull.control.mpc" in architecture.imports()["anyhull.control"]


def test_a_module_is_one_idea_of_at_most_350_lines(architecture):
    long = {name: n for name, path in architecture.modules().items() if (n := len(path.read_text().splitlines())) > 350}
    assert long == {}


def test_importing_the_package_imports_neither_jax_nor_casadi_nor_matplotlib():
    code = "import sys, anyhull, anyhull.control; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    heavy = {"jax", "casadi", "matplotlib", "gymnasium", "onnx", "pymavlink", "serial", "zenoh", "rosbags", "foxglove"}
    assert not heavy & set(loaded)


def test_a_boats_file_of_any_link_is_read_without_the_packages_of_its_link():
    code = (
        "import sys; from anyhull.onboard import Setup; [Setup.load(f'examples/{n}.toml') for n in sys.argv[1:]];"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    boats = ("boat", "boat-ardupilot", "boat-ros2")
    command = [sys.executable, "-c", code, *boats]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not {"pymavlink", "serial", "zenoh", "rosbags", "rclpy", "foxglove"} & set(loaded)


def test_the_readme_has_at_most_700_words_beside_code():
    text = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(text.split()) <= 700


def test_the_wheel_holds_the_pilots_policies_alone_and_at_most_4_mb(tmp_path):
    # Of a copy, so that what an earlier build left behind is not taken for source.
    source, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(ROOT / "src" / "anyhull", source / "src" / "anyhull", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(out)]
    subprocess.run([*command, str(source)], check=True, capture_output=True, text=True)
    (wheel,) = out.glob("anyhull-*.whl")
    assert wheel.stat().st_size <= 4e6
    names = zipfile.ZipFile(wheel).namelist()
    policies = {Path(name).name for name in names if name.endswith(".safetensors")}
    assert policies == {f"{name}.safetensors" for name in ("field", "field-under", "ideal", "ideal-under")}
    assert len([name for name in names if name.startswith("anyhull/vessels/")]) == 23
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "anyhull/viz/foxglove-layout.json" in names
    assert {"anyhull/lab/page.html", "anyhull/lab/model/world.js", "anyhull/lab/view/app.js"} <= set(names)


def test_every_test_that_the_safety_table_names_exists():
    text = (ROOT / "docs" / "safety.md").read_text()
    named = set(re.findall(r"`(test_\w+)`(?!:)", text))
    existing = {
        name for path in (ROOT / "tests").glob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert len(named) > 50
    assert named <= existing, named - existing
