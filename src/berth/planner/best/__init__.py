"""The best combination: which offers and which hours without reservation together cost least.

`wish` is what is wanted, `supply` what can be had, `solve.best_of` the answer. Pure: no file, no socket, no
clock; the same inputs in any order give the same answer. HiGHS comes with the extra `optimiser`; without it
`best_of` raises `NoOptimiser`, and the caller ranks single offers and says so.
"""
