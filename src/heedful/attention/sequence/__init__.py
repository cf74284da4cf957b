"""K, Q and V for a whole sequence with wanted outputs, or the proof that there are none.

Pure functions of arrays. Matrices are read once more from scratch before they are returned.
"""
