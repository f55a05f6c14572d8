"""No circle between files of a crate; and that the tool sees one."""

from __future__ import annotations

from pathlib import Path

import rust_circles

CRATES = Path(__file__).parents[2] / "crates"


def _crate(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_circles_are_seen_through_names_that_are_passed_on_and_through_paths(tmp_path: Path) -> None:
    crate = _crate(
        tmp_path,
        lib="mod one;\nmod two;\nmod five;\nuse five::Fifth;\npub use one::{First, Other as Renamed};\n",
        one="use crate::two::{deep::{Nested, f}, Second};\npub struct First;",
        two__mod="pub mod deep;\npub struct Second;",
        two__deep="pub struct Nested;\nfn g() { let _ = crate::First; }",
        three="use super::four::Fourth; // and crate::one::First\npub struct Third;",
        five="pub struct Fifth;\nmod inline {\n    use super::Fifth;\n    use crate::First;\n}",
        four="pub struct Fourth;\n#[cfg(test)]\nmod tests {\n    use crate::three::Third;\n}\n",
    )
    assert rust_circles.circles(crate) == [["one.rs", "two/deep.rs"]]


def test_a_parent_that_uses_what_uses_it_is_a_circle(tmp_path: Path) -> None:
    crate = _crate(
        tmp_path,
        lib="mod folder;\n",
        folder__mod="mod part;\npub struct Whole;\nfn f() { part::act() }",
        folder__part="use super::Whole;\npub fn act() {}",
    )
    assert rust_circles.circles(crate) == [["folder/mod.rs", "folder/part.rs"]]
    (tmp_path / "folder/mod.rs").write_text("mod part;\npub use part::act;\npub struct Whole;")
    assert rust_circles.circles(crate) == []


def test_no_file_of_a_crate_stands_in_a_circle() -> None:
    found = {crate.name: rust_circles.circles(crate / "src") for crate in sorted(CRATES.iterdir())}
    assert len(found) > 5
    assert {crate: circles for crate, circles in found.items() if circles} == {}
