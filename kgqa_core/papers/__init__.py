"""What reproduces or measures a published method and is in no default run.

grailqability: benchmarks of unanswerable questions (Patidar et al. 2023) and the parsers Rank-and-Generate (Ye et al.
2022) and retrieve-and-decode (Chen et al. 2021).  ltgen: long-tail benchmarks and relation ranking (Huang et al. 2024).
peers: TransferNet (Shi et al. 2021), an agent on the graph (Song et al. 2025, Sun et al. 2024), constrained decoding
(Luo et al. 2024).  benchmark_files: data cards and JSON lines of benchmarks.
Retrieve-Rewrite-Answer as published (Wu et al. 2023) needs no room: it is the profiles `*-rra-published` of the stages
that every run has.
Nothing of the library imports these rooms: registries name their modules, and they do not import each other.
"""
