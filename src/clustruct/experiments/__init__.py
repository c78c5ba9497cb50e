"""The tables and figures of the paper, one module each, run by one runner.

``clustruct reproduce`` is the way in; `catalogue` lists what there is.
"""
