"""What stands between strangers and the model: limits, budgets, logs, health, clean-up."""
