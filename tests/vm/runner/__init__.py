"""The host's side of the VM tests: get kernels, boot them, run pytest inside, sum up."""
