"""Prefect and MLflow servers that only their owner's programs and browser can use.

`python -m tasks.servers prefect|mlflow` serves one behind a gate: the `Host` header, the `Origin` and the login of
each request are checked.  `process` starts such a server as a child that ends with its parent, `login` keeps the auth
string.
Of the rest of the project only the guard and the addresses of `kgqa_core.serving` are imported: the servers' image has
these files, the two, and what they import.
"""
