# check.py - reads main.py without executing any of it, and says what is against the rules
