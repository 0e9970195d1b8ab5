"""Devices to test with, made in the guest: veth pairs, tun and tap with a slow reader, usbnet over a virtual USB bus."""
