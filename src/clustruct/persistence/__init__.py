"""Model files that hold no code.

A model file is a zip archive of JSON and ``.npy`` members (`archive`). It can hold a few kinds of
values (`values`, `arrays`) and objects of listed classes (`classes`); loading calls nothing else.
"""
