"""Finding devices: in every namespace that can be seen, by container or process, by neighbourhood."""
