"""What a demo tells of the log of its parts."""

from inferencecache.app.demo_log import DemoLog


def test_only_trouble_is_kept_and_told_once() -> None:
    """With its fields; everything else shows in other ways."""
    log = DemoLog()
    log.debug("looked", at=1)
    log.info("started", at=2)
    log.warning("slow", at=3)
    log.error("gone", who="engine-0", after_s=2.5)

    assert log.take() == ["gone who=engine-0 after_s=2.5"]
    assert log.take() == []


def test_an_exception_is_told_with_what_it_was() -> None:
    """As Python writes it."""
    log = DemoLog()
    try:
        {}["name"]
    except KeyError:
        log.exception("page_failed", path="/metrics")

    assert log.take() == ["page_failed path=/metrics error=KeyError('name')"]


def test_a_flood_is_cut_at_its_beginning() -> None:
    """The latest hundred stay."""
    log = DemoLog()
    for number in range(250):
        log.error("gone", number=number)
    kept = log.take()

    assert len(kept) == 100
    assert kept[-1] == "gone number=249"
