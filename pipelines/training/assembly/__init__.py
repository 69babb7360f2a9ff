"""The network a stage starts from, its companions and parameter groups, and the exported model folder."""
