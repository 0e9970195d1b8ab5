"""The runner's own logic, tested on the host without booting anything."""
