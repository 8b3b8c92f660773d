"""What a `with` closes."""

from __future__ import annotations

from typing import Self


class Closing:
    """Closes at the end of a `with`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of what it holds."""
        raise NotImplementedError
