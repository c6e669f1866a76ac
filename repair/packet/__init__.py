"""The packet as a document: rows are read once (`case`), and pure builders make one plain document of them.

The page, the Markdown and the signed JSON show the same document, so that none of them knows more than another.
"""
