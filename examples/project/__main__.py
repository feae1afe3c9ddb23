"""A program of several files: brig run examples/project."""
import pathlib

import words

print(words.greeting(), pathlib.Path(__file__).parent)
