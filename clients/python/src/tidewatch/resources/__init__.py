"""The routes of the API, grouped by resource.

Arguments are the members of the API's bodies in Python's spelling (`retention_days` is `retentionDays`); what is a
dictionary has the API's own names. Arguments of a creation that are left out get the service's defaults, and those of a
change stay as they are, while `None` in a change is null.
"""
