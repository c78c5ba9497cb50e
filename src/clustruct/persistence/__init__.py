"""Model files with no code in them.

A model file is a zip archive of JSON and ``.npy`` members (`archive`). What a member may say is a
short list of kinds of values (`values`, `arrays`) and of classes (`classes`); loading makes these
and calls nothing.
"""
