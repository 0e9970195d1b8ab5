"""Containers found in trees of files like the ones the runtimes keep."""

import json
from pathlib import Path

import pytest

from bqltop.discovery import containers
from bqltop.discovery.containers import ContainerError

ID = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"0::/system.slice/docker-{ID}.scope\n", ("docker", ID)),
        (f"12:pids:/docker/{ID}\n0::/\n", ("docker", ID)),
        (f"0::/machine.slice/libpod-{ID}.scope/container\n", ("podman", ID)),
        (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope\n", ("podman", ID)),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n", ("containerd", ID)),
        (f"0::/kubepods/burstable/pod12ab/{ID}\n", ("containerd", ID)),
        (f"0::/kubepods.slice/kubepods-besteffort.slice/crio-{ID}.scope\n", ("cri-o", ID)),
        (f"0::/docker/{OTHER}/docker/{ID}\n", ("docker", ID)),
        ("0::/lxc.payload.web/system.slice\n", ("lxc", "web")),
        ("0::/machine.slice/systemd-nspawn@web.service/payload\n", ("nspawn", "web")),
        (f"0::/machine.slice/libpod-conmon-{ID}.scope\n", None),
        (f"0::/system.slice/web.service/libpod-payload-{ID}\n", ("podman", ID)),  # Quadlet: cgroups=split
        ("0::/lxc.monitor.web\n", None),
        ("0::/user.slice/session-3.scope\n", None),
        (f"0::/user.slice/not-{ID[:40]}.scope\n", None),
        ("", None),
    ],
)
def test_the_control_group_names_the_container(text, expected):
    assert containers.parse_cgroup(text) == expected


@pytest.fixture
def host(tmp_path):
    """A file system's root with processes; ``write(path, text)`` adds a file."""

    def write(path: str, text: object) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text))

    write("proc/1/cgroup", "0::/init.scope\n")
    write("proc/self/cgroup", "0::/docker/" + ID)
    return tmp_path, write


def test_docker_by_name_id_and_beginning(host):
    root, write = host
    write("proc/40/cgroup", f"0::/system.slice/docker-{ID}.scope\n")
    write("proc/41/cgroup", f"0::/system.slice/docker-{ID}.scope\n")
    write(f"var/lib/docker/containers/{ID}/config.v2.json", {"Name": "/web-1", "State": {"Running": True}})
    for word in ("web-1", ID, ID[:12], ID[:3]):
        found = containers.find(word, root)
        assert (found.id, found.pid, found.label, found.runtime) == (ID, 40, "web-1", "docker")
    assert containers.names_by_id(root) == {ID: "web-1"}


def test_podman_of_root_and_of_users(host):
    root, write = host
    write("proc/50/cgroup", f"0::/machine.slice/libpod-{ID}.scope\n")
    write("proc/60/cgroup", f"0::/user.slice/libpod-{OTHER}.scope\n")
    write("var/lib/containers/storage/overlay-containers/containers.json", [{"id": ID, "names": ["db"]}])
    write("home/ann/.local/share/containers/storage/overlay-containers/containers.json", [{"id": OTHER, "names": ["mine"]}])
    assert containers.find("db", root).pid == 50
    assert containers.find("mine", root).pid == 60


def test_kubernetes_by_pod_and_container(host):
    root, write = host
    write("proc/70/cgroup", f"0::/kubepods/pod1/cri-containerd-{ID}.scope\n")
    notes = {"io.kubernetes.cri.sandbox-name": "shop-7d9", "io.kubernetes.cri.container-name": "nginx"}
    write(f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json", {"annotations": notes})
    for word in ("shop-7d9/nginx", "nginx", ID[:8]):
        assert containers.find(word, root).pid == 70


def test_a_container_without_a_readable_name_is_found_by_its_id(host):
    root, write = host
    write("proc/40/cgroup", f"0::/docker/{ID}\n")
    assert containers.find(ID[:12], root).label == ID[:12]


def test_lxc_by_its_name(host):
    root, write = host
    write("proc/90/cgroup", "0::/lxc.payload.web/init.scope\n")
    assert containers.find("web", root).pid == 90


def test_what_cannot_be_found_is_one_sentence(host):
    root, write = host
    with pytest.raises(ContainerError, match='no running container "web"; no container is running here'):
        containers.find("web", root)
    write("proc/40/cgroup", f"0::/docker/{ID}\n")
    write("proc/41/cgroup", f"0::/docker/{ID[:20] + OTHER[:44]}\n")
    with pytest.raises(ContainerError, match=f"there are: {ID[:12]}"):
        containers.find("web", root)
    with pytest.raises(ContainerError, match="more than one container"):
        containers.find(ID[:12], root)
    write(f"var/lib/docker/containers/{OTHER}/config.v2.json", {"Name": "/old"})
    with pytest.raises(ContainerError, match='"old" is not running'):
        containers.find("old", root)


@pytest.mark.parametrize("hostile", ["", "-it", "--help", "a b", "web;reboot", "$(x)", "\n", "/"])
def test_a_name_no_container_can_have_reaches_no_command(hostile, monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a command was run")

    monkeypatch.setattr(containers.subprocess, "run", never)
    with pytest.raises(ContainerError, match="not a name that a container can have"):
        containers.find(hostile, Path("/"))


def test_damaged_state_files_are_passed_over(host):
    root, write = host
    write(f"var/lib/docker/containers/{ID}/config.v2.json", "{ half")
    write("var/lib/containers/storage/overlay-containers/containers.json", {"not": "a list"})
    write(f"run/containerd/io.containerd.runtime.v2.task/default/{ID}/config.json", [1])
    assert containers.running(root) == []


def test_the_runtimes_command_is_asked_last(monkeypatch):
    asked = []

    def fake(command, **_: object):
        asked.append(command[0])
        if command[0] != "podman":
            raise FileNotFoundError
        return containers.subprocess.CompletedProcess(command, 0, f"77 {ID} /deep\n", "")

    monkeypatch.setattr(containers.subprocess, "run", fake)
    found = containers.find("bqt-deep", Path("/"))
    assert (found.pid, found.runtime, found.names) == (77, "podman", ("deep",))
    assert asked == ["docker", "podman"]
