"""The training loop: one LightningModule for every recipe, with validation, resuming and stopping."""
