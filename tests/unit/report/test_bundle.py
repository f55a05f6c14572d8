"""The library that draws figures in the browser is made once and kept; what is kept can stand in a script."""

from pathlib import Path

import pytest
import vl_convert

from plimsoll.report.drawing import bundle


@pytest.mark.parametrize(("folder", "kept"), [(".plimsoll", True), ("usr", False)])
def test_the_library_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, kept: bool) -> None:
    """In the project's own folder it is kept, and in no other."""
    made = []
    monkeypatch.setattr(bundle, "kept_at", lambda: tmp_path / folder / "library.js")
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_, **__: made.append(1) or "a</script>b")
    (tmp_path / folder).mkdir()
    for _ in range(2):
        assert bundle.bundle.__wrapped__() == "a<\\/script>b"
    assert len(made) == (1 if kept else 2)
    assert (tmp_path / folder / "library.js").exists() is kept
