"""The tools of the agent under test."""

DEGREES = {"Oslo": 4, "Cairo": 31}


def weather(city: str) -> str:
    """The weather in a city, now."""
    if city not in DEGREES:
        return f"there is no weather station in {city}"
    return f"{DEGREES[city]} degrees"
