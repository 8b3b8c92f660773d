"""The command fuzzer: every command of `kgqa` with every kind of input that a careless or hostile user may give.

`commands` reads the commands and their parameters from the app itself, `kinds` makes a hostile value of each kind,
`world` makes the files that a user has, `worker` runs cases in forked children of a warm process, `judge` says what a
case broke, and `table` counts.  `python -m tests.support.command_fuzzer --help` runs it by hand.
"""
