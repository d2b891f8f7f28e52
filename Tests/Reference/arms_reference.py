"""The arm of each token by `--split` and `--split-salt`, computed with Python's hashlib: a JSON object of arms by
token for the tokens on standard input.
"""
import hashlib, json, sys
from fractions import Fraction


def arm_of(token, split, salt):
    digest = hashlib.sha256(f"{salt}:{token.lower()}".encode()).digest()
    position = int.from_bytes(digest[:8], "big") * 10_000 // 2**64
    end = Fraction(0)
    for part in split.split(","):
        name, percent = part.split("=")
        end += Fraction(percent) * 100
        if position < end:
            return name
    return "holdout"


if __name__ == "__main__":
    split, salt = sys.argv[1:]
    json.dump({token: arm_of(token, split, salt) for token in sys.stdin.read().split()}, sys.stdout)
