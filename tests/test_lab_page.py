"""The lab in a real browser: Debian's chromium, driven by Playwright; skipped where one of them is missing."""

import shutil
from urllib.parse import quote

import pytest

from anyhull import Pilot, Sea, Vessel, rounded_rectangle, simulate
from anyhull.lab import write_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt-get install chromium)")

IDEAL = "#current=0&waves=0&delay=0"

RUN = """seconds => {
    const { app } = lab;
    app.play(false);
    while (app.lap.time < seconds - 1e-9) app.lap.step();
    app.sync();
    return Object.fromEntries(lab.CONTROLLERS.map(name => [name, lab.meansOf(app.lap.traces[name])]));
}"""
"""Drives the lap up to a time, paused, and gives the mean errors of each controller (m, rad)."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("lab")).as_uri()


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    """Open the page with a fragment of an address; its errors, warnings and requests must be none."""
    opened, wrong = [], []

    def open_page(fragment="", **options):
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}} | options)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
        page.goto(address + fragment)
        page.wait_for_function("window.lab && lab.app.frames.length > 2")
        opened.append(context)
        return page

    yield open_page
    for context in opened:
        context.close()
    assert wrong == []


def test_a_lap_of_the_paper_has_the_errors_that_python_has(visit):
    vessel, reference = Vessel.load("platform-b"), rounded_rectangle()
    metrics = simulate(Pilot.load(vessel=vessel), vessel, reference, Sea.ideal()).metrics()
    page = visit(IDEAL)
    means = page.evaluate(RUN, 0.1 * round(reference.duration / 0.1))
    assert 100 * means["student"]["position"] == pytest.approx(metrics.position_cm, abs=1e-3)
    assert page.evaluate("lab.app.lap.world.k") == round(reference.duration / 0.1)


def test_the_page_drives_by_itself_and_draws_at_the_screens_resolution(visit):
    page = visit("#rate=4", device_scale_factor=2)
    page.wait_for_function("lab.app.lap.time > 1")
    width, shown = page.evaluate("[document.getElementById('plan').width, document.getElementById('plan').clientWidth]")
    assert width == 2 * shown
    # More than one colour on the plan: it is drawn.
    drawn = """() => { const c = document.getElementById('plan');
        return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size; }"""
    assert page.evaluate(drawn) > 10
    page.keyboard.press("Space")
    time = page.evaluate("lab.app.lap.time")
    page.wait_for_timeout(300)
    assert page.evaluate("lab.app.lap.time") == time


def test_the_student_recovers_from_three_times_the_mass(visit):
    page = visit(IDEAL)
    before = page.evaluate(RUN, 10.0)
    page.click("#change-mass button:has-text('× 3')")
    page.evaluate(RUN, 15.0)
    page.click("#play")  # drive on to write the numbers
    page.wait_for_function("document.querySelector('#dynamics td').textContent.startsWith('2.0')")  # 50 N / 25 kg
    page.keyboard.press("Space")
    after = page.evaluate(RUN, 30.0)
    # Within the tracking error before the change: 0.55 cm over the last 5 s before it, 0.13 cm over the last 5 s here.
    assert after["student"]["recent"] < before["student"]["recent"]


def test_a_state_comes_back_from_its_address(visit):
    page = visit()
    page.evaluate(RUN, 0.0)
    page.select_option("#vessel", "csad")
    page.select_option("#shape", "eight")
    page.fill("#seed", "7")
    page.locator("#seed").blur()
    page.locator("#set-waves").fill("0.05")
    page.locator("#set-waves").dispatch_event("change")
    page.evaluate(RUN, 20.0)
    page.click("#change-surge button:has-text('60 %')")
    page.locator("#set-e0").fill("0.6")
    page.locator("#set-e0").dispatch_event("change")
    page.evaluate(RUN, 30.0)
    fragment = page.evaluate("location.hash")
    assert "vessel=csad" in fragment
    again = visit(fragment)
    again.evaluate(RUN, 30.0)
    state = "[lab.app.start, lab.app.events, lab.app.lap.world.boats.student.state, lab.app.lap.world.boats.mpc.state]"
    assert again.evaluate(state) == page.evaluate(state)
    assert again.evaluate("location.hash") == fragment
    assert len(again.query_selector_all(".chip")) == 2


@pytest.mark.parametrize(
    "fragment",
    ["#vessel=none&shape=&seed=x&e=1,2&path=0,0,1&at=5:seed:3;x:mass:2;7:mass:", "#" + quote("<b>&%00&===;;;::")],
)
def test_an_absurd_address_gives_the_defaults(visit, fragment):
    page = visit(fragment)
    found = page.evaluate("[lab.app.start.vessel, lab.app.start.shape, lab.app.start.seed, lab.app.events.length]")
    assert found == ["platform-b", "rectangle", 0, 0]


def test_sliders_say_kilograms_and_newtons_and_keep_the_ratio_of_inertia(visit):
    page = visit(IDEAL)
    page.evaluate("lab.app.play(false); lab.app.restart()")
    # Platform B: 50 N on 15 kg in surge.
    assert page.inner_text("label[for=set-e0] + output").strip() == "3.33 m/s²"
    assert page.inner_text("#set-e0 + .meaning") == "Fx = 50.0 N"
    page.locator("#set-e6").fill("0.75")
    page.locator("#set-e6").dispatch_event("change")
    c_rv, c_ru = page.evaluate("lab.app.start.e.slice(6, 8)")
    assert c_rv > 1.5
    assert c_rv * c_ru == pytest.approx(-1)
    page.click("#own")
    assert page.evaluate("lab.app.start.e") is None


def test_a_path_is_drawn_by_hand(visit):
    page = visit(IDEAL)
    page.click("#draw")
    box = page.locator("#plan").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 200, y)
    page.mouse.down()
    for dx, dy in ((-100, -150), (100, -140), (220, 0), (90, 130), (-100, 150), (-190, 30)):
        page.mouse.move(x + dx, y + dy, steps=4)
    page.mouse.up()
    assert page.evaluate("lab.app.start.shape") == "drawn"
    assert "path=" in page.evaluate("location.hash")
    assert page.evaluate(RUN, 5.0)["student"]["position"] < 0.05


@pytest.mark.parametrize("width", [360, 390, 768])
def test_a_phone_needs_no_horizontal_scrolling(visit, width):
    page = visit("#wind=0.1&at=0:mass:3", viewport={"width": width, "height": 844}, has_touch=True)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = """width => [...document.querySelectorAll('body *')].filter(e =>
            e.getBoundingClientRect().right > width + 0.5 || e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1)
        .filter(e => getComputedStyle(e).display !== 'inline').map(e => e.id || e.className || e.tagName)"""
    assert page.evaluate(wide, width) == []


def test_light_and_dark_follow_the_system_until_the_visitor_chooses(visit):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = visit(color_scheme="light"), visit(color_scheme="dark")
    assert light.evaluate(ground) != dark.evaluate(ground)
    dark.click("#theme")
    assert dark.evaluate(ground) == light.evaluate(ground)


def test_a_page_from_a_wheel_has_no_ppo_and_works(visit, monkeypatch, tmp_path):
    monkeypatch.setattr("anyhull.lab.data.BASELINE", "not-in-the-wheel")
    page = visit("#focus=ppo")
    assert page.evaluate("lab.CONTROLLERS") == ["student", "ppo", "mpc", "pid"]
    page.goto(write_page(tmp_path).as_uri() + "#focus=ppo")
    page.wait_for_function("lab.app.lap.time > 0.5")
    assert page.evaluate("[lab.app.start.focus, ...lab.CONTROLLERS]") == ["student", "student", "mpc", "pid"]
