"""The table of figures and the records of the vocabulary describe the same things."""

from dataclasses import fields as dataclass_fields

import pytest

from bqltop import fields, model, window

RECORDS = {
    ("device", "sample"): model.Device,
    ("queue", "sample"): model.QueueSample,
    ("queue", "window"): window.QueueWindow,
    ("qdisc", "sample"): model.QdiscSample,
    ("qdisc", "window"): window.QdiscWindow,
    ("napi", "sample"): model.NapiSample,
    ("napi", "window"): window.NapiWindow,
    ("link", "sample"): model.LinkStats,
    ("link", "window"): window.LinkWindow,
    ("cpu", "sample"): model.CpuSample,
    ("tun", "sample"): model.TunQueueSample,
    ("probe", "sample"): model.ProbeSample,
    ("own", "sample"): model.SelfSample,
}
STRUCTURE = {"seconds", "newer", "queues", "qdiscs", "napis", "link"}


def names(record) -> set[str]:
    return {f.name for f in dataclass_fields(record)}


@pytest.mark.parametrize(("scope", "source"), RECORDS)
def test_every_attribute_of_a_record_is_in_the_table_and_the_other_way_round(scope, source):
    table = {f.id for f in fields.of(scope, source)}
    attributes = names(RECORDS[scope, source])
    if source == "window":  # identities are in the table once, under "sample"
        attributes -= {f.id for f in fields.of(scope, "sample")} - table
    assert attributes == table


def test_figures_of_the_whole_window_are_in_the_table():
    assert names(window.Window) - STRUCTURE == {f.id for f in fields.of("device", "window")}


def test_every_row_is_well_formed():
    for field in fields.FIELDS:
        assert field.scope in fields.SCOPES
        assert field.source in fields.SOURCES
        assert field.kind in fields.KINDS
        assert 0 < len(field.title) <= 9, field
        assert field.meaning.endswith((".", "...")), field
        assert field.where, field
    assert len({(f.scope, f.source, f.id) for f in fields.FIELDS}) == len(fields.FIELDS)


def test_a_figure_without_a_value_shows_as_a_dash():
    for field in fields.FIELDS:
        assert field.text(object()) == "-"


def test_look_up_prefers_the_window_and_takes_a_source():
    assert fields.get("queue", "tx_timeouts").source == "window"
    assert fields.get("queue", "tx_timeouts", "sample").kind == "counter"
    assert fields.get("queue", "limit").source == "sample"
    with pytest.raises(KeyError):
        fields.get("queue", "no_such_figure")


def test_values_are_formatted_by_their_unit():
    queue = model.QueueSample(0, stopped_ns=3_500_000, drv_xoff=True, packets=71_234)
    assert fields.get("queue", "stopped_ns").text(queue) == "3.5 ms"
    assert fields.get("queue", "drv_xoff").text(queue) == "yes"
    assert fields.get("queue", "packets").text(queue) == "71.2k"
