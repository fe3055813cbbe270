"""TOML -> frozen, validated configuration. Nothing is opened or energised here."""

from hil.config.load import Config, check, load, load_model, load_system

__all__ = ["Config", "check", "load", "load_model", "load_system"]
