"""Two models on matching timelines, each with its own steps' messages there and back."""

from interact import left, right  # noqa: F401
from record import main

if __name__ == "__main__":
    main(globals())
