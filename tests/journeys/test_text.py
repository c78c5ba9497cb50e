"""Someone with texts and ratings: which words count the same?"""

import json
import random

GOOD = ["great", "wonderful", "moving", "superb"]
BAD = ["dull", "boring", "awful", "weak"]
REST = ["film", "actor", "scene", "story", "music", "screen", "plot", "role", "camera", "cast"]


def write_reviews(terminal, n=150):
    draw = random.Random(0)
    lines = []
    for number in range(n):
        words = draw.choices(GOOD, k=draw.randint(0, 4)) + draw.choices(BAD, k=draw.randint(0, 4))
        stars = sum(word in GOOD for word in words) - sum(word in BAD for word in words)
        text = " ".join(draw.sample(words + draw.choices(REST, k=8), k=len(words) + 8))
        review = None if number == 11 else text
        lines.append(json.dumps({"review": review, "stars": stars + draw.gauss(0, 0.2)}))
    terminal.write("reviews.jsonl", "\n".join(lines))


def test_words_that_count_the_same(terminal):
    write_reviews(terminal)
    options = ("--clusters", "3", "--alpha", "1e-4", "--nonzero", "all", "--out", "r.clustruct")
    answer = terminal.works("fit", "reviews.jsonl", "--target", "stars", *options, "--json")
    found = json.loads(answer)
    groups = found["model"]["groups"]
    assert set(groups[0]["features"]) == set(BAD)
    assert set(groups[-1]["features"]) == set(GOOD)
    assert found["columns"][0]["kind"] == "text"
    terminal.write("new.jsonl", '{"review": "a superb cast"}\n{"review": "awful and dull"}\n')
    rows = json.loads(terminal.works("predict", "r.clustruct", "new.jsonl", "--json"))[
        "predictions"
    ]
    assert rows[0]["prediction"] > rows[1]["prediction"]


def test_text_that_is_not_there(terminal):
    write_reviews(terminal)
    line = terminal.fails("fit", "reviews.jsonl", "--target", "stars", "--text", "reviews")
    assert "reviews.jsonl has no column 'reviews' (--text). Did you mean 'review'?" in line


def test_lines_that_are_no_json(terminal):
    terminal.write("reviews.jsonl", '{"review": "good", "stars": 3}\nreview,stars\n')
    line = terminal.fails("fit", "reviews.jsonl", "--target", "stars")
    assert "reviews.jsonl, line 2: no JSON. Give one object a line" in line
    terminal.write("reviews.json.gz", "not packed")
    line = terminal.fails("fit", "reviews.json.gz", "--target", "stars")
    assert "reviews.json.gz is not compressed by gzip, as its name says" in line
