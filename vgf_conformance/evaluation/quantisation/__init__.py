"""The quantise stage, step by step: is what it makes of a model right, whatever the format costs?"""
