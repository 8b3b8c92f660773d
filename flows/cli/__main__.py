"""Run the command line with `python -m flows.cli`."""

from flows.cli.start import main

main()
