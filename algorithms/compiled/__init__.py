"""Fast twins of plain functions, compiled with Numba: nothing else in the project imports it.

A module here has the functions of the module of the same name one level up, with the same
signatures: `compiled/nashconv.py` those of `nashconv.py`, `compiled/cfr.py` the solvers of
`cfr.py`. The plain module has the equations; `parity.check` and tests compare the two.

Some kernels stand beside their equations in other packages (`mccfr`, `dominance`, the phantom
games, ...), because a plain twin would be the same loops. They are decorated with `jit.compiled`,
so that the way in which code is compiled is decided here.
"""
