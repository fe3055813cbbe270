"""The window: measured over simulated force. A process of its own: `python -m hil_gui RUN.h5`."""
