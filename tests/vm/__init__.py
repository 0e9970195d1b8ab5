"""Tests that need another kernel than this machine's: `make test-vm` boots each kernel and runs them inside."""
