"""Optimizers that torch does not have, as `torch.optim.Optimizer`: apart from the components, which import no torch."""
