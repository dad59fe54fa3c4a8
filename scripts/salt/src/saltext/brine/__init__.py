"""Kubernetes bundles as Salt states, by brine. Salt's loader finds the modules beside this file."""

__version__ = "0.3.0.dev0"
