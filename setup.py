"""Builds the wheel; all else is in pyproject.toml.

`flows` and `tasks` are folders of a checkout, and names that a user's own code likes to have.  The wheel has them below
`kgqa/app`, which its `kgqa.pth` puts last on Python's path (docs/adr/0014-the-distribution.md).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

APP = ("flows", "tasks")


class BuildPackages(build_py):
    """Copies the packages; for a wheel, those of APP below `kgqa/app`."""

    def run(self) -> None:
        """Copies them."""
        super().run()
        if self.editable_mode:
            return
        built = Path(self.build_lib)
        app = built / "kgqa" / "app"
        app.mkdir(exist_ok=True)
        for name in APP:
            shutil.rmtree(app / name, ignore_errors=True)
            (built / name).rename(app / name)
        (built / "kgqa.pth").write_text("kgqa/app\n", encoding="utf-8")


class Metadata(egg_info):
    """Names the packages that stand at the top of a wheel."""

    def run(self) -> None:
        """Writes the metadata."""
        super().run()
        Path(self.egg_info, "top_level.txt").write_text("kgqa\nkgqa_core\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildPackages, "egg_info": Metadata})
