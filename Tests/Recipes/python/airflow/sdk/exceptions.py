class AirflowFailException(Exception):
    """The task fails and is not tried again."""
