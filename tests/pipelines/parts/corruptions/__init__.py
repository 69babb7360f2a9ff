"""What corruptions promise, against the reference where there is one and by brute force where there is none."""
