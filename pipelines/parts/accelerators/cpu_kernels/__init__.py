"""What torch's own CPU kernels make slow in a training step, compiled for the machine at hand; and who uses it.

    library               compiles the C files with the system's compiler, once a machine
    dropout, attention,   functions with gradients over it, each equal to torch's own up to rounding and the numbers drawn
    layer_norm, …
    heads, residual,      whole blocks of BERT- and T5-shaped networks as one function each
    intermediate
    projection            scores of a vocabulary that are computed once somebody asks for them
    weight_gradient       what every linear layer learns, in the processor's matrix tiles
    product               with whole numbers of rows, so that few shapes are met
    adamw, embedding      the optimizer's step as one call, and the gradients of what was looked up, by rows
    faster                gives them to a network

Without a compiler nothing here is used, and torch's own kernels compute the same. Modules here import torch; nothing that plans
imports them.
"""
