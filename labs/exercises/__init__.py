"""Checks for the exercises: they accept every right answer and say what is wrong with a wrong one."""
