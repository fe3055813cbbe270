"""Speed of array models and recruitment controllers."""
