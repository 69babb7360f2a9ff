"""Our own networks, each a Hugging Face `PreTrainedModel`. Modules here import torch; nothing that plans imports them."""
