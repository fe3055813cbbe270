"""Twin and observers: what the loop estimates beside the hardware."""
