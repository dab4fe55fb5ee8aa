"""The types of bodies and answers: dictionaries with the members and names of the API.

Optional members of answers are always there, with `None` for null, unless they are marked `NotRequired`.
"""
