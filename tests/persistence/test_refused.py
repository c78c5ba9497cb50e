"""What is not to be saved, and files that are not to be trusted."""

import hashlib
import io
import json
import os
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.pipeline import make_pipeline

import clustruct as cs
from clustruct._atomic import replacing
from clustruct.persistence import archive
from clustruct.persistence.values import _DECODERS
from tests.persistence.models import EXPERTS, FEATURES, FRAME, same


@pytest.fixture(scope="module")
def model():
    return cs.FeatureClusterRegressor(2, n_nonzero=5).fit(FEATURES.X, FEATURES.y)


@pytest.fixture
def path(tmp_path, model):
    cs.save(model, tmp_path / "model.clustruct")
    return tmp_path / "model.clustruct"


NAMES = st.sampled_from(
    [
        "clustruct.Certificate",
        "clustruct.FeatureClusterRegressor",
        "sklearn.pipeline.Pipeline",
        "clustruct.Prices",
        "sklearn.model_selection.KFold",
    ]
)
STATES = st.sampled_from(
    [
        "objective",
        "lower_bound",
        "gap",
        "relative_gap",
        "source",
        "labels_",
        "n_clusters_",
        "steps",
        "memory",
        "verbose",
        "n_splits",
    ]
)

# ---- Saving


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: cs.FeatureClusterRegressor(random_state=np.random.RandomState(0)),
            r"FeatureClusterRegressor\.random_state is a RandomState.* integer",
        ),
        (
            lambda: cs.FeatureClusterClassifierCV(scoring=make_scorer(accuracy_score)),
            r"FeatureClusterClassifierCV\.scoring is a .*Scorer.* Replace it",
        ),
        (lambda: cs.FeatureClusterRegressorCV(scoring=len), r"scoring is the function 'len'"),
        (
            lambda: make_pipeline(
                TfidfVectorizer(tokenizer=str.split), cs.FeatureClusterRegressor()
            ),
            r"Pipeline\.steps\[0\]\[1\]\.tokenizer is the function 'split', .* no code",
        ),
        (
            lambda: make_pipeline(TfidfVectorizer(input="file"), cs.FeatureClusterRegressor()),
            r"input='file', which reads or writes files",
        ),
        (
            lambda: make_pipeline(cs.FeatureClusterRegressor(), memory="cache"),
            r"Pipeline has memory='cache', which reads or writes files",
        ),
        (
            lambda: cs.SampleClusterRegressor(gate=RandomForestClassifier()),
            r"RandomForestClassifier",
        ),
        (lambda: cs.FeatureClusterRegressor(init=np.zeros(2, "f4,f8")), r"init is a numpy.ndarray"),
        (lambda: cs.FeatureClusterRegressor(2, blocks=nested()), r"blocks.* nested too deeply"),
        (lambda: object(), "object is a builtins.object"),
    ],
)
def test_what_cannot_be_saved_is_named(make, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        cs.save(make(), tmp_path / "model.clustruct")
    assert not list(tmp_path.iterdir())


def nested():
    loop = []
    loop.append(loop)
    return loop


def test_a_gate_that_cannot_be_saved_is_named(tmp_path):
    gate = RandomForestClassifier(n_estimators=2, random_state=0)
    model = cs.SampleClusterRegressor(2, gate=gate, n_init=1, random_state=0)
    with pytest.raises(ValueError, match=r"SampleClusterRegressor\.gate is a .*RandomForest"):
        cs.save(model.fit(EXPERTS.X, EXPERTS.y), tmp_path / "model.clustruct")


def test_a_folder_that_is_not_there(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing, the folder of m, does not exist"):
        cs.save(model, tmp_path / "missing" / "m")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        cs.save(model, tmp_path)


@pytest.mark.parametrize("end", [KeyboardInterrupt, OSError("disk full")])
def test_what_was_there_stays_when_saving_ends_early(model, path, monkeypatch, end):
    before = path.read_bytes()

    def stop(*args, **kwargs):
        raise end

    monkeypatch.setattr(zipfile.ZipFile, "writestr", stop)
    with pytest.raises((KeyboardInterrupt, OSError)):
        cs.save(model, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of Unix")
def test_files_get_the_usual_permissions(model, path):
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    cs.save(model, path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_replacing_writes_nothing_unless_the_block_ends_well(tmp_path):
    with pytest.raises(TypeError), replacing(tmp_path / "file") as partial:
        partial.write_text(None)
    assert not list(tmp_path.iterdir())


# ---- Loading what is damaged


def load_or_complain(path):
    """The model, or None where there is a ValueError that names the file."""
    try:
        return cs.load(path)
    except ValueError as error:
        complaint = str(error)
    assert str(path) in complaint
    assert complaint.endswith(".")
    return None


def test_no_flipped_bit_goes_unnoticed_or_astray(path, model):
    data = path.read_bytes()
    draw = random.Random(0)
    refused = 0
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        found = load_or_complain(path)
        refused += found is None
        assert found is None or same(vars(found), vars(model)), place
    assert refused > 0.7 * len(data)


def test_no_truncated_file_loads(path):
    data = path.read_bytes()
    for length in (*range(0, len(data), 17), len(data) - 1):
        path.write_bytes(data[:length])
        assert load_or_complain(path) is None, length


@pytest.mark.parametrize("seed", range(200))
def test_garbled_files_are_refused_or_the_same(path, model, seed):
    draw = random.Random(seed)
    data = bytearray(path.read_bytes())
    start = draw.randrange(len(data))
    length = draw.choice((1, 2, 4, 8, 64))
    data[start : start + length] = draw.randbytes(draw.choice((0, length, 2 * length)))
    path.write_bytes(data)
    found = load_or_complain(path)
    assert found is None or same(vars(found), vars(model))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty. Save the model again"),
        (
            pickle.dumps([1, 2]),
            "no model file but a pickle. Name a file that `clustruct.save` wrote",
        ),
        (b"a,b\n1,2\n", "no model file but something else"),
        (b"PK\x03\x04 and no more", "damaged"),
    ],
)
def test_foreign_files(path, data, message):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        cs.load(path)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        cs.load(tmp_path / "missing")


# ---- Loading what was made to do harm


def rebuilt(path, members, manifest=None):
    """The archive with other members and a manifest that fits them."""
    entries = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in members.items()
    }
    standard = {"format": archive.FORMAT, "version": 1, "packages": {}, "members": entries}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("manifest.json", json.dumps({**standard, **(manifest or {})}))
        for name, data in members.items():
            target.writestr(name, data)


def content(model, **notes):
    return {"model.json": json.dumps({"model": model, "notes": {"dict": []}}).encode()}


def test_a_rebuilt_file_loads(path, model):
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist() if name != "manifest.json"}
    rebuilt(path, members)
    assert same(vars(cs.load(path)), vars(model))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"object": ["os.system", {}]},
            "names the class 'os.system', which no model file may hold",
        ),
        ({"object": ["builtins.eval", {}]}, "names the class"),
        ({"object": ["sklearn.base.BaseEstimator", {}]}, "names the class"),
        ({"object": ["clustruct.FeatureClusterRegressor", {}]}, "has no 'alpha'"),
        ({"pickle": "gASVBQ=="}, "kind 'pickle', which there is not"),
        ({"type": "numpy.load"}, "names the type"),
        ({"type": "eval"}, "names the type"),
        ({"dtype": "O"}, "not the name of a plain data type"),
        ({"array": "arrays/7.npy"}, "malformed"),
        ({"array": ["x"]}, "malformed"),
        ({"tuple": 3}, "malformed"),
        ({"dict": [[[1], 2]]}, "malformed"),
        ({"set": [[1]]}, "malformed"),
        ({"float": "00"}, "malformed"),
        ({"scalar": ["<f8", "00"]}, "bytes that it needs"),
        ({"range": [1, 2, 0]}, "range"),
        ({"objects": [[10**9], []]}, "reshape"),
        ({"objects": [[10**12], {"range": [0, 10**12, 1]}]}, "does not hold a list"),
        ({"a": 1, "b": 2}, "of no kind, or of several"),
        ([1, 2], "no model"),
        (None, "no model"),
    ],
)
def test_files_cannot_name_what_is_not_on_the_list(path, value, message):
    rebuilt(path, content(value))
    with pytest.raises(ValueError, match=message) as caught:
        cs.load(path)
    assert str(path) in str(caught.value)
    assert "save the model again" in str(caught.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["arrays/0.npy", "<f8", "clustruct.Certificate", "numpy.float64", "00"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(st.sampled_from(sorted(_DECODERS)), inner).map(lambda pair: dict([pair]))
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
        | st.tuples(NAMES, st.dictionaries(STATES, inner, max_size=6)).map(
            lambda pair: {"object": list(pair)}
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_content_leads_astray(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / "any.clustruct"
    rebuilt(path, {**content(tree), "arrays/0.npy": npy(np.arange(3))})
    load_or_complain(path)


def test_deep_nesting_is_refused(path):
    rebuilt(path, {"model.json": b"[" * 100_000 + b"]" * 100_000})
    with pytest.raises(ValueError, match="no JSON"):
        cs.load(path)
    deep = []
    for _ in range(200):
        deep = [deep]
    rebuilt(path, content(deep))
    with pytest.raises(ValueError, match="nested too deeply"):
        cs.load(path)


def altered(path, change):
    """The file of a model, with its JSON changed and all sums right."""
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist() if name != "manifest.json"}
    tree = json.loads(members["model.json"])
    change(tree["model"]["object"][1], members)
    members["model.json"] = json.dumps(tree).encode()
    rebuilt(path, members)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize(
    "labels", [np.full(8, 10**9), np.full(8, -2), np.zeros(3, int), np.zeros(8)]
)
def test_groups_that_compiled_code_could_not_bear(path, labels):
    def change(state, members):
        members["arrays/99.npy"] = npy(labels)
        state["labels_"] = {"array": "arrays/99.npy"}

    altered(path, change)
    with pytest.raises(ValueError, match="a FeatureClusterRegressor in it is impossible: labels_"):
        cs.load(path)


FACTOR_CHANGES = {
    "more levels than weights": lambda f: f["levels"]["tuple"].append("xx"),
    "no levels": lambda f: f.update(levels=3),
    "edges": lambda f: f.update(edges=f["shares"]),
}


@pytest.mark.parametrize("change", FACTOR_CHANGES)
def test_factors_that_compiled_code_could_not_bear(tmp_path, change):
    path = tmp_path / "model.clustruct"
    cs.save(cs.FeatureClusterRegressor(6).fit(FRAME, FEATURES.y), path)

    def alter(state, members):
        columns = state["factors_"]["object"][1]
        FACTOR_CHANGES[change](columns["factors"]["tuple"][0]["object"][1])

    altered(path, alter)
    with pytest.raises(ValueError, match=r"factors of a model in it are impossible|has levels=3"):
        cs.load(path)


@pytest.mark.parametrize("name", ["predict", "__class__", "not a name", "get_params"])
def test_attributes_that_would_hide_methods(path, name):
    altered(path, lambda state, members: state.update({name: 1}))
    with pytest.raises(ValueError, match="has an attribute"):
        cs.load(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(np.array([None], dtype=object)), "header"),
        (npy(np.zeros(2, "f4,f8")), "header"),
        (npy(np.zeros(3))[:-1], "bytes that it needs"),
        (npy(np.zeros(3)) + b"0", "bytes that it needs"),
        (npy(np.zeros(3)).replace(b"(3,)", b"(9" + b"9" * 1 + b")"), "header|bytes"),
        (npy(np.zeros(3, bool))[:-1] + b"\x02", "truth values"),
        (npy(np.array(["a"]))[:-4] + b"\xff\xff\xff\xff", "no characters"),
        (b"\x93NUMPY\x01\x00\x10", "header"),
        (b"", "header"),
    ],
)
def test_arrays_that_are_none(path, data, message):
    def change(state, members):
        members["arrays/99.npy"] = data
        state["coef_"] = {"array": "arrays/99.npy"}

    altered(path, change)
    with pytest.raises(ValueError, match=message):
        cs.load(path)


def test_sparse_matrices_with_columns_beyond_their_end(path):
    def change(state, members):
        parts = np.ones(1), np.array([10**6], np.int32), np.array([0, 1], np.int32)
        for number, part in enumerate(parts):
            members[f"arrays/{90 + number}.npy"] = npy(part)
        arrays = [{"array": f"arrays/{90 + number}.npy"} for number in range(3)]
        state["init"] = {"sparse": ["csr", "array", [1, 2], arrays]}

    altered(path, change)
    with pytest.raises(ValueError):
        cs.load(path)


def test_later_versions_are_refused(path):
    rebuilt(path, content(None), {"version": 2})
    with pytest.raises(ValueError, match=r"version 2 of the format.* Update clustruct"):
        cs.load(path)


@pytest.mark.parametrize(
    "manifest",
    [
        {"format": "other"},
        {"version": "1"},
        {"version": 0},
        {"members": []},
        {"packages": {"a": 1}},
    ],
)
def test_manifests_of_something_else(path, manifest):
    rebuilt(path, content(None), manifest)
    with pytest.raises(ValueError, match="its manifest"):
        cs.load(path)


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/passwd", "arrays/x.npy", "code.py"])
def test_members_of_another_name(path, name):
    rebuilt(path, {**content(None), name: b""})
    with pytest.raises(ValueError, match="a member that no model file has"):
        cs.load(path)


def test_members_that_the_manifest_does_not_name(path):
    rebuilt(path, {**content(None), "arrays/0.npy": b""}, {"members": {}})
    with pytest.raises(ValueError, match="not those that its manifest names"):
        cs.load(path)


def test_a_member_twice(path):
    with zipfile.ZipFile(path, "a") as target, pytest.warns(UserWarning, match="Duplicate"):
        target.writestr("model.json", b"{}")
    with pytest.raises(ValueError, match="a name twice"):
        cs.load(path)


def test_other_archives(path):
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("hello.txt", "hello")
    with pytest.raises(ValueError, match=r"zip archive without manifest\.json"):
        cs.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as target:
        target.writestr("manifest.json", "{}")
    with pytest.raises(ValueError, match="packed in a way"):
        cs.load(path)


def test_bombs_are_not_unpacked(path, monkeypatch):
    zeros = bytes(50_000_000)
    rebuilt(path, {**content(None), "arrays/0.npy": zeros})
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *args: pytest.fail("unpacked"))
    with pytest.raises(ValueError, match=r"it would take 50,000,.*max_size=50000"):
        cs.load(path, max_size=10_000_000)


def test_a_member_that_is_larger_than_it_says(path):
    rebuilt(path, {**content(None), "arrays/0.npy": bytes(100_000)})
    data = path.read_bytes()
    small = data.replace(struct.pack("<L", 100_000), struct.pack("<L", 10))
    assert small != data
    path.write_bytes(small)
    assert load_or_complain(path) is None


@pytest.mark.parametrize("size", [0, -1, 1.5, None])
def test_sizes_that_are_none(path, size):
    with pytest.raises(ValueError, match="max_size must be"):
        cs.load(path, max_size=size)
