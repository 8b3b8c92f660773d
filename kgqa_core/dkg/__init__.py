"""The differentiable KG: its arrays, one hop along weighted relations, and sparse entity sets."""
