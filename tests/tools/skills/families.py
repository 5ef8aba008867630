"""Skills as people write them, good and broken, by family, with the verdict of the published validator."""

LONG = "x" * 1025
NAME = "name: forms\n"
ABOUT = "description: Fill in forms.\n"


def skill(front: str, body: str = "# Forms\n") -> str:
    """The text of a SKILL.md."""
    return f"---\n{front}---\n{body}"


FAMILIES: dict[str, tuple[str, str, bool]] = {
    # name: (folder, text, whether the validator takes it)
    "smallest": ("forms", skill(NAME + ABOUT), True),
    "all fields": (
        "forms",
        skill(
            NAME
            + ABOUT
            + "license: MIT\ncompatibility: needs git\nallowed-tools: Read Bash(git:*)\nmetadata:\n  author: ada\n"
        ),
        True,
    ),
    "no body": ("forms", skill(NAME + ABOUT, ""), True),
    "windows line ends": ("forms", skill(NAME + ABOUT).replace("\n", "\r\n"), True),
    "comments": ("forms", skill(f"# mine\n{NAME}# about\ndescription: Fill. # it\n"), True),
    "folded description": ("forms", skill(f"{NAME}description: >\n  Fill\n  in.\n\n  Use it.\n"), True),
    "folded and chomped": ("forms", skill(f"{NAME}description: >-\n  Fill\n  in.\n"), True),
    "literal description": ("forms", skill(f"{NAME}description: |\n  Fill: in.\n  - b\n"), True),
    "plain over lines": ("forms", skill(f"{NAME}description: Fill\n  in forms.\n"), True),
    "double quotes": ("forms", skill(f'{NAME}description: "Use when: \\"now\\""\n'), True),
    "single quotes": ("forms", skill(f"{NAME}description: 'It''s: so'\n"), True),
    "a number for a name": ("123", skill("name: 123\n" + ABOUT), True),
    "a truth for a description": ("forms", skill(f"{NAME}description: yes\n"), True),
    "letters of other scripts": ("формы", skill("name: формы\n" + ABOUT), True),
    "longest name": ("a" * 64, skill(f"name: {'a' * 64}\n" + ABOUT), True),
    "longest description": ("forms", skill(f"{NAME}description: {'x' * 1024}\n"), True),
    "list of tools": ("forms", skill(f"{NAME}{ABOUT}allowed-tools:\n  - Read\n  - Grep\n"), True),
    "empty licence": ("forms", skill(f"{NAME}{ABOUT}license:\n"), True),
    "metadata as text": ("forms", skill(f"{NAME}{ABOUT}metadata: mine\n"), True),
    "deep metadata": ("forms", skill(f"{NAME}{ABOUT}metadata:\n  a:\n    b: c\n"), True),
    "dashes in a description": ("forms", skill(f"{NAME}description: a --- b\n"), True),
    "a rule in the body": ("forms", skill(NAME + ABOUT, "a\n\n---\n\nb\n"), True),
    "a link in a description": ("forms", skill(f"{NAME}description: See https://a.b/c#d now.\n"), True),
    "no front matter": ("forms", "# Forms\n", False),
    "empty file": ("forms", "", False),
    "not closed": ("forms", "---\n" + NAME + ABOUT, False),
    "empty front matter": ("forms", skill(""), False),
    "front matter is a list": ("forms", skill("- name\n- forms\n"), False),
    "front matter is a text": ("forms", skill("forms\n"), False),
    "blank before it": ("forms", "\n" + skill(NAME + ABOUT), False),
    "a mark of byte order": ("forms", "\ufeff" + skill(NAME + ABOUT), False),
    "no name": ("forms", skill(ABOUT), False),
    "no description": ("forms", skill(NAME), False),
    "empty name": ("forms", skill("name:\n" + ABOUT), False),
    "empty description": ("forms", skill(f"{NAME}description: ''\n"), False),
    "blank description": ("forms", skill(f"{NAME}description: '  '\n"), False),
    "capitals": ("Forms", skill("name: Forms\n" + ABOUT), False),
    "a space": ("my forms", skill("name: my forms\n" + ABOUT), False),
    "an underscore": ("my_forms", skill("name: my_forms\n" + ABOUT), False),
    "a hyphen first": ("-forms", skill("name: -forms\n" + ABOUT), False),
    "a hyphen last": ("forms-", skill("name: forms-\n" + ABOUT), False),
    "two hyphens": ("my--forms", skill("name: my--forms\n" + ABOUT), False),
    "name too long": ("a" * 65, skill(f"name: {'a' * 65}\n" + ABOUT), False),
    "another folder": ("sheets", skill(NAME + ABOUT), False),
    "description too long": ("forms", skill(f"{NAME}description: {LONG}\n"), False),
    "compatibility too long": ("forms", skill(f"{NAME}{ABOUT}compatibility: {LONG}\n"), False),
    "compatibility is a list": ("forms", skill(f"{NAME}{ABOUT}compatibility:\n  - git\n"), False),
    "name is a list": ("forms", skill("name:\n  - forms\n" + ABOUT), False),
    "description is a mapping": ("forms", skill(f"{NAME}description:\n  a: b\n"), False),
    "an unknown field": ("forms", skill(f"{NAME}{ABOUT}version: 1\n"), False),
    "several unknown fields": ("forms", skill(f"model: x\n{NAME}{ABOUT}hooks:\n  a: b\n"), False),
    "a second colon": ("forms", skill(f"{NAME}description: Use when: now\n"), False),
    "a key twice": ("forms", skill(NAME + NAME + ABOUT), False),
    "a tab": ("forms", skill(f"{NAME}{ABOUT}metadata:\n\ta: b\n"), False),
    "tools in brackets": ("forms", skill(f"{NAME}{ABOUT}allowed-tools: [Read]\n"), False),
    "metadata in braces": ("forms", skill(NAME + ABOUT + "metadata: {a: b}\n"), False),
    "an anchor": ("forms", skill(f"{NAME}description: &a b\n"), False),
    "a tag": ("forms", skill(f"{NAME}description: !!str b\n"), False),
    "an open quote": ("forms", skill(f'{NAME}description: "Fill\n'), False),
    "a sign at the start": ("forms", skill(f"{NAME}description: @forms\n"), False),
    "bad indentation": ("forms", skill(f"{NAME}  description: b\n"), False),
    "several mistakes": ("Forms-", skill("name: Forms--x_\ncolor: red\n"), False),
}
