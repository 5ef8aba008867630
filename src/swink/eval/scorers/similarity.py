"""Similarity: how far two texts are apart."""


def edit_distance(one: str, other: str) -> int:
    """How many characters to insert, delete or replace until the texts are equal (Levenshtein).

    Myers' algorithm, in Hyyrö's form: a column of the table is two long integers, a bit for each character.
    """
    if len(one) < len(other):
        one, other = other, one
    if not other:
        return len(one)
    places: dict[str, int] = {}
    for index, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << index
    last, everything = 1 << len(one) - 1, (1 << len(one)) - 1
    more, less, distance = everything, 0, len(one)
    for character in other:
        match = places.get(character, 0)
        diagonal = ((((match & more) + more) ^ more) | match | less) & everything
        up = less | ~(diagonal | more) & everything
        down = diagonal & more
        distance += 1 if up & last else -1 if down & last else 0
        up = up << 1 | 1
        more = (down << 1 | ~(diagonal | up)) & everything
        less = diagonal & up & everything
    return distance
