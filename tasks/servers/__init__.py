"""Prefect and MLflow servers that only their owner's programs and browser can use.

`python -m tasks.servers prefect|mlflow` serves one behind a gate: the `Host` header, the `Origin` and the login of
each request are checked.  `process` starts such a server as a child that ends with its parent, `login` keeps the auth
string.
Nothing here imports another part of the project: the servers' image has these files and nothing else of it.
"""
