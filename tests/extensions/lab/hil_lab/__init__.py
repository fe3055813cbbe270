"""What a lab adds to hil: a file each, and a line each in entry_points.txt."""
