"""Training: `data` cuts a text into batches, `optim` steps, `train` loops, `checkpoint` keeps the state."""
