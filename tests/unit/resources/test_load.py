"""From files to the objects in force: what is wrong leaves the object as it was."""

from resource_texts import load, names, policy, tenant, together

from inferencecache.resources import (
    CACHE_POLICY,
    CACHE_TENANT,
    LoadState,
    Place,
    ResourceLoader,
    SourceFile,
    product_kinds,
)
from inferencecache.settings.resources import ResourceSettings

TTL_5M, TTL_6M = "{evictionTTL: 5m}", "{evictionTTL: 6m}"
WRONG = "{evictionTTL: 5}"


def ttls(state: LoadState) -> dict[str, str | None]:
    """Return the TTL that each policy in force asks for, by namespace and name."""
    return {
        f"{found.key.namespace}/{found.key.name}": found.spec.eviction_ttl
        for found in CACHE_POLICY.objects_in(state)
    }


def test_documents_of_all_files_are_objects() -> None:
    """Several documents a file, several files, several kinds."""
    state = load(
        {
            "a.yaml": together(policy(TTL_5M), tenant()),
            "b.yaml": policy(namespace="team-b"),
        }
    )

    assert names(state) == [
        "CachePolicy team-a/default",
        "CachePolicy team-b/default",
        "CacheTenant team-a/default",
    ]
    assert not state.errors
    assert CACHE_TENANT.objects_in(state)[0].place == Place("a.yaml", 2, 0, 5)


def test_without_a_namespace_it_is_default() -> None:
    """As with kubectl, where nothing says otherwise."""
    text = policy().replace(", namespace: team-a", "")

    assert names(load({"a.yaml": text})) == ["CachePolicy default/default"]


def test_lists_are_taken_apart() -> None:
    """What kubectl prints for several objects can be mounted as it is."""
    items = "".join(
        "- " + text.replace("\n", "\n  ").rstrip() + "\n"
        for text in (policy(TTL_5M), policy(TTL_6M, name="other"))
    )
    mixed = f"apiVersion: v1\nkind: List\nmetadata: {{resourceVersion: ''}}\nitems:\n{items}"
    typed = mixed.replace("v1\nkind: List", "inferencecache.io/v1alpha1\nkind: CachePolicyList", 1)

    for text in (mixed, typed):
        state = load({"a.yaml": text})
        assert ttls(state) == {"team-a/default": "5m", "team-a/other": "6m"}
        assert not state.errors


def test_a_list_without_items_or_with_more_is_wrong() -> None:
    """A list is as strict as everything else."""
    text = "apiVersion: v1\nkind: List\nitems: []\nentries: []\n"

    (error,) = load({"a.yaml": text}).errors

    assert error.field == "entries"


def test_status_and_what_a_cluster_adds_are_ignored() -> None:
    """An object can be taken from a cluster and put into a file."""
    text = policy(TTL_5M).replace(
        "namespace: team-a",
        "namespace: team-a, uid: x, generation: 3, managedFields: [{a: 1}], "
        "creationTimestamp: null, labels: {a: b}",
    )

    state = load({"a.yaml": text + "status: {anything: [1, 2]}\n"})

    assert not state.errors
    assert ttls(state) == {"team-a/default": "5m"}


def test_an_object_that_becomes_wrong_stays_as_it_was() -> None:
    """The other objects of the file follow the file."""
    good = load({"a.yaml": together(policy(TTL_5M), policy(TTL_5M, name="other"))})

    bad = load({"a.yaml": together(policy(WRONG), policy(TTL_6M, name="other"))}, good)

    assert ttls(bad) == {"team-a/default": "5m", "team-a/other": "6m"}
    assert [str(key) for key in bad.held] == ["CachePolicy team-a/default"]
    assert bad.errors_by_kind == {"CachePolicy": 1}
    assert not load({"a.yaml": together(policy(TTL_6M))}, bad).held


def test_an_object_that_was_never_right_is_not_there() -> None:
    """There is no last good state to keep."""
    state = load({"a.yaml": policy(WRONG)})

    assert not state.objects
    assert not state.held


def test_what_is_gone_is_gone() -> None:
    """A document or a file taken away takes its objects away."""
    state = load({"a.yaml": together(policy(), tenant()), "b.yaml": policy(name="other")})

    assert names(load({"a.yaml": tenant()}, state)) == ["CacheTenant team-a/default"]


def test_a_file_that_is_no_yaml_changes_nothing() -> None:
    """Half a file may still be being written: not even its beginning counts."""
    before = load({"a.yaml": together(policy(TTL_5M), tenant()), "b.yaml": policy(name="b")})
    text = together(policy(TTL_6M), "apiVersion: [\n")

    after = load({"a.yaml": text, "b.yaml": policy(TTL_6M, name="b")}, before)

    assert ttls(after) == {"team-a/default": "5m", "team-a/b": "6m"}
    assert len(after.held) == 2
    (error,) = after.errors
    assert error.place.file == "a.yaml"
    assert error.kind == ""
    assert names(load({"b.yaml": policy(name="b")}, after)) == ["CachePolicy team-a/b"]


def test_an_empty_file_is_being_written() -> None:
    """A file is empty between being opened and being written; a comment alone is meant."""
    before = load({"a.yaml": policy()})

    assert names(load({"a.yaml": ""}, before)) == names(before)
    assert names(load({"a.yaml": "# nothing here\n"}, before)) == []


def test_a_document_without_a_name_might_be_any_that_is_missing() -> None:
    """A mistake in a name does not delete the object that had it."""
    before = load({"a.yaml": together(policy(TTL_5M), policy(name="other"))})
    text = together(policy(TTL_6M).replace("name: default", "nme: default"), policy(name="other"))

    after = load({"a.yaml": text}, before)

    assert ttls(after) == {"team-a/default": "5m", "team-a/other": None}
    assert {error.field for error in after.errors} == {"metadata.name", "metadata.nme"}


def test_an_unknown_kind_is_an_error_that_names_the_kinds() -> None:
    """A typo in a kind neither goes unnoticed nor deletes the object."""
    before = load({"a.yaml": policy()})

    after = load({"a.yaml": policy().replace("CachePolicy", "CachePolcy")}, before)

    (error,) = after.errors
    assert (error.field, error.value) == ("kind", "'CachePolcy'")
    assert error.allowed.startswith("one of CachePolicy, CacheTenant")
    assert names(after) == names(before)


def test_an_object_that_stands_twice_stays_as_it_was() -> None:
    """Neither place counts, as nobody can tell which is meant; the error names both."""
    before = load({"a.yaml": policy(TTL_5M)})

    after = load({"a.yaml": policy(TTL_6M), "b.yaml": together(tenant(), policy())}, before)

    assert ttls(after) == {"team-a/default": "5m"}
    (error,) = after.errors
    assert str(error) == (
        "b.yaml, document 2, CachePolicy team-a/default, metadata.name: found a second "
        "CachePolicy team-a/default, expected each object once; it also stands in "
        "a.yaml, document 1"
    )
    assert ttls(load({"a.yaml": policy(TTL_6M)}, after)) == {"team-a/default": "6m"}


def test_two_at_once_from_the_start_are_none() -> None:
    """Which of them counts must not depend on the order of files."""
    assert not load({"a.yaml": policy(), "b.yaml": policy()}).objects


def test_an_object_may_move_to_another_file() -> None:
    """Also while its old file cannot be read."""
    before = load({"a.yaml": policy(TTL_5M)})

    after = load({"a.yaml": "[", "b.yaml": policy(TTL_6M)}, before)

    assert ttls(after) == {"team-a/default": "6m"}
    assert not after.held


def test_an_unreadable_file_keeps_its_objects() -> None:
    """A file that the system does not let us read has not been taken away."""
    loader = ResourceLoader(product_kinds(), ResourceSettings())
    before = load({"a.yaml": policy()})

    after = loader.load(
        [SourceFile(name="a.yaml", content=b"", problem="Permission denied")], before
    )

    assert names(after) == names(before)
    assert after.errors[0].value == "Permission denied"


def test_unchanged_files_are_not_read_again() -> None:
    """A reload costs what has changed."""
    files = {"a.yaml": policy(), "b.yaml": tenant()}
    before = load(files)

    after = load({**files, "b.yaml": tenant("{tenantID: b}")}, before)

    assert after.readings["a.yaml"] is before.readings["a.yaml"]
    assert after.readings["b.yaml"] is not before.readings["b.yaml"]


def test_errors_are_bounded_and_counted() -> None:
    """A file full of mistakes does not fill the memory."""
    settings = ResourceSettings(errors_max=3)

    state = load({"a.yaml": together(*["[]\n"] * 10)}, settings=settings)

    assert len(state.errors) == 3
    assert state.errors_by_kind == {"": 10}


def test_reading_gives_way_often() -> None:
    """Two hundred events of the parser are one slice."""
    files = [SourceFile(name="a.yaml", content=together(*[policy()] * 500).encode())]
    loader = ResourceLoader(product_kinds(), ResourceSettings())

    assert sum(1 for _ in loader.load_slices(files, LoadState())) > 40


def test_an_item_that_is_no_object_is_wrong() -> None:
    """The error counts items from one."""
    (error,) = load({"a.yaml": "apiVersion: v1\nkind: List\nitems: [7]\n"}).errors

    assert str(error) == (
        "a.yaml, document 1, item 1: found 7, expected an object with apiVersion and kind"
    )


def test_long_lists_and_many_objects_give_way_too() -> None:
    """No document is too long for it."""
    item = "- {apiVersion: inferencecache.io/v1alpha1, kind: CachePolicy, metadata: {name: p%d}}\n"
    text = "apiVersion: v1\nkind: List\nitems:\n" + "".join(item % n for n in range(600))
    files = [SourceFile(name="a.yaml", content=text.encode())]
    steps = ResourceLoader(product_kinds(), ResourceSettings()).load_slices(files, LoadState())

    assert sum(1 for _ in steps) > 50


def test_an_error_says_the_line_of_the_mistake_or_that_of_its_document() -> None:
    """Whose line it is depends on whether the text or only a value is wrong."""
    unreadable, twice = "a: [", policy("{eviction: LRU, eviction: LFU}")
    state = load(
        {
            "a.yaml": together(policy(), policy("{evictionTTL: 5}", namespace="b")),
            "b.yaml": together(policy(namespace="c"), twice.replace("team-a", "d")),
            "c.yaml": f"# a comment\n{unreadable}",
            "d.yaml": "apiVersion: v1\nkind: List\nitems:\n- null\n",
        }
    )

    lines = {
        (error.place.file, error.place.item, error.field): error.place.line
        for error in state.errors
    }
    assert lines == {
        ("a.yaml", 0, "spec.evictionTTL"): 5,
        ("b.yaml", 0, "spec.eviction"): 9,
        ("c.yaml", 0, ""): 3,
        ("d.yaml", 1, ""): 0,
    }
