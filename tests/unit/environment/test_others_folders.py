"""Folders of others: nothing is laid where somebody else could change where the path leads; no mode is set."""

import os
import stat

import pytest

from plimsoll.environment import Fault, Journal, StateDir, doctor
from plimsoll.environment.folders import clone, placed
from plimsoll.environment.folders.others import others_may_change

SOMEBODY = 54321


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def _folder(path, mode):
    """Whatever the umask."""
    path.mkdir()
    path.chmod(mode)


@pytest.mark.parametrize("which", ["it", "above"])
@pytest.mark.parametrize(("mode", "why"), [(0o777, "written by everybody"), (0o1777, None), (0o755, None)])
def test_a_folder_that_others_may_write_to(tmp_path, which, mode, why):
    folder = tmp_path / "one/two"
    folder.mkdir(parents=True)
    changed = folder if which == "it" else folder.parent
    changed.chmod(mode)
    said = others_may_change(folder)
    assert said is None if why is None else (why in said and said.startswith(f"{changed} "))


def test_a_folder_of_somebody_else(needs, tmp_path, state):
    needs("root")
    folder = tmp_path / "one/two"
    folder.mkdir(parents=True)
    os.chown(folder.parent, SOMEBODY, SOMEBODY)
    assert others_may_change(folder) == f"{folder.parent} belongs to user {SOMEBODY}"
    with (
        pytest.raises(Fault, match="could put other files in the place of ours"),
        Journal.create(state, "x") as journal,
    ):
        placed.make(placed.folder_of(folder, "x"), journal=journal)
    assert list(folder.iterdir()) == []
    os.chown(folder.parent, 0, SOMEBODY)
    folder.parent.chmod(0o770)
    assert f"by the group {SOMEBODY}" in others_may_change(folder)


def test_a_link_is_looked_behind(tmp_path):
    """What a symbolic link leads to is where files are laid: the link itself is not walked again."""
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (tmp_path / "link").symlink_to(open_to_all)
    assert str(open_to_all) in others_may_change(tmp_path / "link")


def test_a_folder_that_was_there_keeps_its_mode(tmp_path):
    _folder(tmp_path / "mine", 0o700)
    _folder(tmp_path / "mine/work", 0o711)
    state = StateDir(tmp_path / "mine").prepare()
    assert (_mode(state.root), _mode(state.work)) == (0o700, 0o711)
    assert (_mode(state.datasets), _mode(state.journal)) == (0o755, 0o700)
    assert state.prepare() and sorted(path.name for path in state.root.iterdir()) == sorted(
        ["a-a", "datasets", "journal", "work"]
    )


def test_what_plimsoll_makes_has_its_mode_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        state = StateDir(tmp_path / "deep/new").prepare()
    finally:
        os.umask(before)
    assert (_mode(state.root), _mode(state.work), _mode(state.journal)) == (0o755, 0o755, 0o700)


@pytest.mark.parametrize("inside", ["march.txt", None])
def test_a_journal_of_somebody_else_is_not_closed(tmp_path, inside):
    _folder(tmp_path / "journal", 0o755)
    if inside:
        (tmp_path / "journal" / inside).touch()
    with pytest.raises(Fault, match="is not Plimsoll's"):
        StateDir(tmp_path).prepare()
    assert _mode(tmp_path / "journal") == 0o755


def test_journals_of_an_earlier_version_are_closed(tmp_path):
    state = StateDir(tmp_path / "state").prepare()
    (state.root / "lock").touch()
    (state.journal / "run.jsonl").touch()
    state.journal.chmod(0o755)
    assert _mode(state.prepare().journal) == 0o700


@pytest.mark.parametrize("what", ["the folder", "a file"])
@pytest.mark.parametrize("reflink", [True, False])
def test_a_link_in_the_place_of_what_is_copied_is_not_followed(tmp_path, monkeypatch, what, reflink):
    """The tree is a server's, and its user could have root copy him any file."""
    secret, source = tmp_path / "secret", tmp_path / "source"
    for folder in (secret, source):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    walk = clone._walk

    def walked(tree, target):
        found = walk(tree, target)
        if what == "a file":
            (source / "file").unlink()
            (source / "file").symlink_to(secret / "file")
        return found

    monkeypatch.setattr(clone, "_walk", walked)
    if what == "the folder":
        (tmp_path / "link").symlink_to(secret)
        source = tmp_path / "link"
    with pytest.raises((Fault, OSError), match=r"is not a folder|Too many levels of symbolic links"):
        clone.clone_tree(source, tmp_path / "target", reflink=reflink)
    assert "secret" not in [file.read_text() for file in (tmp_path / "target").glob("*")]


def test_the_doctor_names_who_could_change_the_state_folder(state):
    above = state.root / "above"
    _folder(above, 0o755)
    inside = StateDir(above / "state").prepare()
    (check,) = [one for one in doctor.diagnose(inside) if one.name == "state folder"]
    assert check.ok is True
    above.chmod(0o777)
    (check,) = [one for one in doctor.diagnose(inside) if one.name == "state folder"]
    assert check.ok is None and f"{above} may be written by everybody" in check.found and check.remedy
