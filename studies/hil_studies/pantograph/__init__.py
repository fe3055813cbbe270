"""The pantograph impact rig."""
