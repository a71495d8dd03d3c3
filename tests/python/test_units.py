import pytest

from offpath import units
from offpath.errors import OffpathError


@pytest.mark.parametrize(
    "text, rate",
    [
        ("1gbit", 10**9),
        ("2.5Gbit", 2_500_000_000),
        ("500mbit", 5 * 10**8),
        ("100 kbit", 10**5),
        ("1gbit/s", 10**9),
        ("unlimited", None),
    ],
)
def test_rates(text, rate):
    assert units.parse_rate(text) == rate
    assert units.parse_rate(units.format_rate(rate)) == rate


@pytest.mark.parametrize("text", ["", "1", "gbit", "-1gbit", "1gb", "1tbit", "0gbit", "10bit", "1 gbit x"])
def test_unknown_rates_are_refused_with_what_is_accepted(text):
    with pytest.raises(OffpathError) as error:
        units.parse_rate(text)
    assert repr(text) in str(error.value) and "1gbit" in error.value.hint


@pytest.mark.parametrize(
    "text, size",
    [
        ("1", 1),
        ("4096", 4096),
        ("64K", 65536),
        ("1.5M", 3 * 2**19),
        ("4MiB", 2**22),
        ("2GB", 2**31),
        (" 1m ", 2**20),
    ],
)
def test_sizes(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "M", "1T", "1MM", "0x10"])
def test_unknown_sizes_are_refused(text):
    with pytest.raises(OffpathError):
        units.parse_size(text)


def test_size_lists():
    assert units.parse_sizes("1M, 4M,16M") == [2**20, 2**22, 2**24]
    for text in ("", ",", "1M,x"):
        with pytest.raises(OffpathError):
            units.parse_sizes(text)


@pytest.mark.parametrize(
    "size, text", [(1, "1"), (1023, "1023"), (1024, "1K"), (3 * 2**19, "1.5M"), (2**30, "1G")]
)
def test_sizes_are_written_short(size, text):
    assert units.format_size(size) == text


def test_durations():
    assert units.parse_duration("50us") == pytest.approx(50e-6)
    assert units.parse_duration("1.5ms") == pytest.approx(1.5e-3)
    assert units.parse_duration("2s") == 2
    for text in ("50", "1min", "-1s"):
        with pytest.raises(OffpathError):
            units.parse_duration(text)


def test_fractions():
    assert units.parse_fraction("0.5") == 0.5
    assert units.parse_fraction("50%") == 0.5
    for text in ("0", "0%", "1.5", "101%", "half"):
        with pytest.raises(OffpathError):
            units.parse_fraction(text)


def test_assignments():
    assert units.parse_assignments(["A=1", "B=x=y", "C="], "--env") == {"A": "1", "B": "x=y", "C": ""}
    for text in ("A", "=1", "1A=2"):
        with pytest.raises(OffpathError, match="--env"):
            units.parse_assignments([text], "--env")


@pytest.mark.parametrize("text, cpus", [("0", [0]), ("0-2,5", [0, 1, 2, 5]), ("3,1", [1, 3])])
def test_cpu_lists(text, cpus):
    assert units.parse_cpus(text) == cpus
    assert units.parse_cpus(units.format_cpus(cpus)) == cpus


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-", "-1"])
def test_unknown_cpu_lists_are_refused(text):
    with pytest.raises(OffpathError):
        units.parse_cpus(text)


def test_a_list_has_known_entries_only():
    assert units.split_known("b, a", "letter", "abc") == ["b", "a"]
    with pytest.raises(OffpathError, match="letter 'd' is not known") as error:
        units.split_known("a,d", "letter", "abc")
    assert error.value.hint == "use a, b, c"
    with pytest.raises(OffpathError, match="the list of letters is empty"):
        units.split_known(",", "letter", "abc")


def test_whole_numbers_are_told_from_others():
    assert units.split_whole("1,20", "--sizes") == (1, 20)
    with pytest.raises(OffpathError, match="--sizes '1,x' is not understood"):
        units.split_whole("1,x", "--sizes")
