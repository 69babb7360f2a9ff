"""Optimizers of our own, each a torch `Optimizer`. Modules here import torch; nothing that plans imports them."""
