"""TransferNet (Shi et al. 2021) over the differentiable KG."""
