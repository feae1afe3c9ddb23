"""The table of ./dev test neighbours, from rows that are made up."""
from support import neighbours


def row(name, p99, gap):
    return {"name": name, "about": "what it does", "of": 4, "busy": 0, "seconds": 1, "runs": 9, "honest": [1, p99, 99], "host": [1, 2, gap], "log": 0, "ends": {"exited": 2}, "rounds": 5}


def ratios(lines, name):
    """The four cells: p99 to quiet and to spin, longest gap to quiet and to spin."""
    return next([cell.strip() for cell in line.split("|")[8:12]] for line in lines if line.startswith(f"| {name} "))


ROWS = [row("quiet", 1, 2), row("spin", 2, 10), row("bomb", 7, 20), row("quiet", 3, 4)]


def test_a_row_is_compared_with_the_middle_of_those_that_were_measured_again():
    assert ratios(neighbours.table([*ROWS, row("quiet", 100, 100)]), "bomb") == ["2.3", "**3.5**", "5.0", "2.0"]


def test_a_row_is_bold_where_it_costs_more_than_thrice_what_spinning_does():
    assert ratios(neighbours.table([row("spin", 1, 1), row("bomb", 3, 3.2)]), "bomb") == ["", "3.0", "", "**3.2**"]


def test_a_row_without_those_that_it_is_compared_with_has_no_ratio():
    assert ratios(neighbours.table([row("bomb", 7, 20)]), "bomb") == ["", "", "", ""]


def test_a_page_says_what_each_bomb_does_once_and_that_the_machine_was_busy():
    text = "\n".join(neighbours.page(ROWS, 0.5))
    assert text.count("**quiet**: what it does") == 1 and "busy with something else (up to 50%" in text and "busy" not in "\n".join(neighbours.page(ROWS, 0))
