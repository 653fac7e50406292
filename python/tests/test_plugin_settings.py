# SPDX-License-Identifier: Apache-2.0
"""understudy.pytest_plugin: the fixture npu and the settings of its server."""
import pytest

from pytest_runs import lines_with

pytest_plugins = ["pytest_runs"]


def test_a_test_has_a_server_of_its_own(run):
    result = run(
        """
def test_own(npu):
    import acl, understudy
    assert acl.rt.get_device_count() == (2, 0)
    assert acl.get_soc_name() == "Ascend910B3"
    assert understudy.runtime_directory() == npu.directory
    assert os.environ["UNDERSTUDY_MEMORY"] == "4G"

def test_parent_is_untouched():
    assert "UNDERSTUDY_PRODUCT" not in os.environ and "acl" not in sys.modules
"""
    )
    result.assert_outcomes(passed=2)


def test_two_products_live_in_one_session(run):
    result = run(
        """
@pytest.mark.npu(product="a3", devices=3)
def test_a3(npu):
    import acl
    assert (acl.get_soc_name(), acl.rt.get_device_count()[0]) == ("Ascend910_9392", 3)

@pytest.mark.npu(product="a2", memory="1G")
def test_a2(npu):
    import acl
    assert (acl.get_soc_name(), acl.rt.get_device_count()[0]) == ("Ascend910B3", 2)
    assert npu.settings["memory"] == "1G"
"""
    )
    result.assert_outcomes(passed=2)


def test_ini_options_choose_the_settings(run, pytester):
    pytester.makeini("[pytest]\nnpu_product = a3\nnpu_devices = 5\nnpu_memory = 512M\n")
    result = run(
        """
def test_ini(npu):
    assert npu.settings == {"product": "a3", "devices": "5", "memory": "512M"}

@pytest.mark.npu(devices=1, poison="on")
def test_marker_wins(npu):
    assert npu.settings == {"product": "a3", "devices": "1", "memory": "512M", "poison": "on"}
"""
    )
    result.assert_outcomes(passed=2)


def test_the_nearest_marker_wins_and_markers_add_up(run):
    result = run(
        """
pytestmark = pytest.mark.npu(product="a3", devices=4)

class TestClass:
    @pytest.mark.npu(devices=1)
    def test_method(self, npu):
        assert (npu.settings["product"], npu.settings["devices"]) == ("a3", "1")

def test_marker_alone_is_enough():
    assert os.environ["UNDERSTUDY_DEVICES"] == "4"
"""
    )
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "marker, sentence",
    [
        ("colour='red'", "no server for this test: Server has no setting colour; it has product,"),
        ("'a3'", "no server for this test: the marker npu takes keywords only"),
        ("leaks='no'", "no server for this test: leaks is \"fail\" or \"allow\", not 'no'"),
    ],
)
def test_a_wrong_marker_is_an_error_of_that_test_alone(run, marker, sentence):
    result = run(f"@pytest.mark.npu({marker})\ndef test_a(npu): pass\n\ndef test_b(npu): pass\n")
    result.assert_outcomes(passed=1, errors=1)
    assert lines_with(result, sentence)


def test_asking_for_the_fixture_later_is_too_late(run):
    result = run("def test_late(request): request.getfixturevalue('npu')\n")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "npu must be an argument, a usefixtures or a marker of the test")


def test_without_npu_nothing_forks_and_acl_is_not_imported(run):
    result = run(
        """
PARENT = os.getpid()

def test_plain(tmp_path):
    assert os.getpid() == PARENT and "acl" not in sys.modules
    assert not any("libascendcl" in line for line in open("/proc/self/maps"))
"""
    )
    result.assert_outcomes(passed=1)
