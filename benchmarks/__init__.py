"""What the project promises, measured on the machine at hand. Never part of the tests: a busy machine is not a bug."""
