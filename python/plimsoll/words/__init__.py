"""Sentences: verdicts in the words that the terminal, the report and comparisons use.

Reads verdicts and says nothing that they do not hold; what is text in a verdict (reasons, caveats) is analysis's own.
"""
