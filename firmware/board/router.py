"""Routes a two-layer board on a grid: paths of least cost that give way to each other.

Each connection takes the cheapest path, at first through others; what is shared grows dearer with
every turn until nothing is shared (negotiated congestion).
Source: L. McMurchie and C. Ebeling, PathFinder, FPGA 1995.
"""

import heapq
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

import numpy as np
from numba import njit

PITCH_mm = 0.2
TRACK_mm, CLEARANCE_mm = 0.2, 0.2
VIA_mm, VIA_DRILL_mm = 0.6, 0.3
VIA_COST, BOTTOM_COST = 8.0, 1.5  # in grid steps; a bottom without tracks is a whole ground plane
NOBODY = -1
TURNS = 120


@dataclass
class Box:
    """A rectangle of copper or a hole, in mm; on layer 0 (top), 1 (bottom), or both (2).

    `round` is what a rounded pad lacks at its corners, in each direction.
    """

    net: int
    layer: int
    x0: float
    y0: float
    x1: float
    y1: float
    drill: bool = False
    round: float = 0.0


@dataclass
class Job:
    """What one connection starts from and where it ends: boxes; without an end at the bottom."""

    net: int
    ends: list[Box]
    path: list[list[tuple[int, int, int]]] = field(default_factory=list)


def _disc(radius_mm: float) -> np.ndarray:
    """Offsets of the nodes that are nearer than this."""
    most = ceil(radius_mm / PITCH_mm)
    steps = range(-most, most + 1)
    near = radius_mm**2 - 1e-6
    return np.array(
        [(a, b) for a in steps for b in steps if PITCH_mm**2 * (a * a + b * b) < near], np.int64
    )


TRACK_TRACK = _disc(TRACK_mm + CLEARANCE_mm)
TRACK_VIA = _disc((TRACK_mm + VIA_mm) / 2 + CLEARANCE_mm)
VIA_VIA = _disc(VIA_mm + CLEARANCE_mm)


class Grid:
    """What may be where.

    Attributes
    ----------
    track, via : the only net that may have a track or a via at a node; 0 is any, -1 none
    tracks, vias : number of connections that a track or a via at a node would meet
    past : how often each node was shared
    """

    def __init__(self, width_mm: float, height_mm: float) -> None:
        self.shape = (2, round(height_mm / PITCH_mm) + 1, round(width_mm / PITCH_mm) + 1)
        self.track = np.zeros(self.shape, np.int32)
        self.via = np.zeros(self.shape[1:], np.int32)
        self.tracks = np.zeros(self.shape, np.int32)
        self.vias = np.zeros(self.shape[1:], np.int32)
        self.past = np.zeros(self.shape, np.float32)

    @staticmethod
    def node(at: tuple[float, float]) -> tuple[int, int]:
        """Row and column of a place."""
        return round(at[1] / PITCH_mm), round(at[0] / PITCH_mm)

    @staticmethod
    def place(node: tuple[int, int]) -> tuple[float, float]:
        """Place of a row and column, in mm."""
        return round(float(node[1]) * PITCH_mm, 3), round(float(node[0]) * PITCH_mm, 3)

    @staticmethod
    def rows(start: float, end: float) -> slice:
        """Rows, or columns, from one place to another."""
        return slice(round(start / PITCH_mm), round(end / PITCH_mm) + 1)

    def _near(self, box: Box, reach_mm: float) -> tuple[slice, slice, np.ndarray]:
        """The nodes within a distance of a box."""
        rows = slice(
            max(0, round((box.y0 - reach_mm) / PITCH_mm) - 1),
            round((box.y1 + reach_mm) / PITCH_mm) + 2,
        )
        columns = slice(
            max(0, round((box.x0 - reach_mm) / PITCH_mm) - 1),
            round((box.x1 + reach_mm) / PITCH_mm) + 2,
        )
        y = PITCH_mm * np.arange(self.shape[1])[rows, None]
        x = PITCH_mm * np.arange(self.shape[2])[None, columns]
        aside = np.maximum(0, np.maximum(box.x0 - x, x - box.x1))
        above = np.maximum(0, np.maximum(box.y0 - y, y - box.y1))
        return rows, columns, aside**2 + above**2 < reach_mm**2 - 1e-6

    def block(self, box: Box, clearance_mm: float = CLEARANCE_mm) -> None:
        """Keep the tracks and vias of other nets away from a box."""
        layers = (0, 1) if box.layer == 2 else (box.layer,)
        for layer in layers:
            rows, columns, near = self._near(box, TRACK_mm / 2 + clearance_mm)
            _claim(self.track[layer, rows, columns], near, box.net)
        rows, columns, near = self._near(box, VIA_mm / 2 + clearance_mm)
        _claim(self.via[rows, columns], near, box.net)

    def no_via(self, box: Box, reach_mm: float) -> None:
        """No via at all within a distance of a box: a pad that is soldered, or a hole."""
        rows, columns, near = self._near(box, reach_mm)
        self.via[rows, columns][near] = NOBODY

    def inside(self, box: Box) -> list[tuple[int, int, int]]:
        """Nodes at which a track that ends lies within the box."""
        edge = min(TRACK_mm / 2, (box.x1 - box.x0) / 2 - 0.11, (box.y1 - box.y0) / 2 - 0.11)
        edge = max(edge, box.round)
        columns = range(
            ceil((box.x0 + edge) / PITCH_mm - 1e-6), int((box.x1 - edge) / PITCH_mm + 1e-6) + 1
        )
        rows = range(
            ceil((box.y0 + edge) / PITCH_mm - 1e-6), int((box.y1 - edge) / PITCH_mm + 1e-6) + 1
        )
        layers = (0, 1) if box.layer == 2 else (box.layer,)
        return [
            (layer, y, x)
            for layer in layers
            for y in rows
            for x in columns
            if self.track[layer, y, x] in (0, box.net)
        ]

    def stamp(self, path: list[tuple[int, int, int]], sign: int) -> None:
        """Add or take away what a path keeps others from."""
        nodes = np.array(path, np.int64)
        turned = np.flatnonzero(np.diff(nodes[:, 0])) if len(path) > 1 else np.zeros(0, np.int64)
        _stamp(self.tracks, self.vias, nodes, turned, sign)


def _claim(place: np.ndarray, near: np.ndarray, net: int) -> None:
    other = near & (place != 0) & (place != net)
    place[near & (place == 0)] = net
    place[other] = NOBODY


@njit(cache=True)
def _stamp(tracks, vias, nodes, turned, sign):
    _layers, height, width = tracks.shape
    seen = set()
    for i in range(len(nodes)):
        layer, y, x = nodes[i]
        for k in range(len(TRACK_TRACK)):
            b, a = y + TRACK_TRACK[k, 0], x + TRACK_TRACK[k, 1]
            if 0 <= b < height and 0 <= a < width:
                key = (layer * height + b) * width + a
                if key not in seen:
                    seen.add(key)
                    tracks[layer, b, a] += sign
    for i in turned:
        _, y, x = nodes[i]
        for k in range(len(TRACK_VIA)):
            b, a = y + TRACK_VIA[k, 0], x + TRACK_VIA[k, 1]
            if 0 <= b < height and 0 <= a < width:
                for layer in range(2):
                    key = (layer * height + b) * width + a
                    if key not in seen:
                        seen.add(key)
                        tracks[layer, b, a] += sign
    seen_vias = set()
    for i in range(len(nodes)):
        _, y, x = nodes[i]
        for k in range(len(TRACK_VIA)):
            b, a = y + TRACK_VIA[k, 0], x + TRACK_VIA[k, 1]
            if 0 <= b < height and 0 <= a < width and b * width + a not in seen_vias:
                seen_vias.add(b * width + a)
                vias[b, a] += sign
    for i in turned:
        _, y, x = nodes[i]
        for k in range(len(VIA_VIA)):
            b, a = y + VIA_VIA[k, 0], x + VIA_VIA[k, 1]
            if 0 <= b < height and 0 <= a < width and b * width + a not in seen_vias:
                seen_vias.add(b * width + a)
                vias[b, a] += sign


class Wish(NamedTuple):
    """A path that is looked for: nodes, the box of the goals, the net, and what sharing costs."""

    starts: np.ndarray
    goals: np.ndarray
    box: np.ndarray
    net: int
    sharing: float


@njit(cache=True)
def _search(track, via, tracks, vias, past, wish):
    """Nodes of the cheapest path from any start to any goal, or none.

    The box of the goals gives the least cost that is left; without goals the path ends at the
    bottom.
    """
    starts, goals, box, net, sharing = wish
    layers, height, width = track.shape
    size = layers * height * width
    cost = np.full(size, np.inf, np.float32)
    came = np.full(size, -1, np.int32)
    is_goal = np.zeros(size, np.bool_)
    for g in goals:
        is_goal[g] = True
    queue = [(np.float32(0.0), np.int64(0))]
    queue.pop()
    for s in starts:
        cost[s] = 0.0
        heapq.heappush(queue, (np.float32(0.0), s))
    plane = height * width
    found = np.int64(-1)
    done = np.zeros(size, np.bool_)
    while len(queue):
        _, node = heapq.heappop(queue)
        if done[node]:
            continue
        done[node] = True
        layer, rest = node // plane, node % plane
        y, x = rest // width, rest % width
        if is_goal[node] or (len(goals) == 0 and layer == 1):
            found = node
            break
        for move in range(9):
            if move == 8:
                if via[y, x] != 0 and via[y, x] != net:
                    continue
                to_layer, b, a = 1 - layer, y, x
                step = VIA_COST * (1.0 + sharing * vias[y, x])
            else:
                dy = (-1, -1, -1, 0, 0, 1, 1, 1)[move]
                dx = (-1, 0, 1, -1, 1, -1, 0, 1)[move]
                to_layer, b, a = layer, y + dy, x + dx
                step = 1.41421 if dx != 0 and dy != 0 else 1.0
            if not (0 <= b < height and 0 <= a < width):
                continue
            owner = track[to_layer, b, a]
            if owner != 0 and owner != net:
                continue
            to = to_layer * plane + b * width + a
            if done[to]:
                continue
            if to_layer == 1:
                step *= BOTTOM_COST
            step *= (1.0 + past[to_layer, b, a]) * (1.0 + sharing * tracks[to_layer, b, a])
            new = cost[node] + step
            if new < cost[to]:
                cost[to] = new
                came[to] = node
                aside = max(0, box[1] - a, a - box[3])
                above = max(0, box[0] - b, b - box[2])
                least = max(aside, above) + 0.41421 * min(aside, above)
                if len(goals) == 0:
                    least = 0.0
                heapq.heappush(queue, (np.float32(new + least), to))
    path = [found]
    if found < 0:
        return path
    while came[path[-1]] >= 0:
        path.append(came[path[-1]])
    return path


def _one(grid: Grid, job: Job, sharing: float) -> None:
    """Route all ends of a job into one tree."""
    _layers, height, width = grid.shape

    def key(nodes: list[tuple[int, int, int]]) -> np.ndarray:
        return np.array([(n[0] * height + n[1]) * width + n[2] for n in nodes], np.int64)

    ends = [grid.inside(box) for box in job.ends]
    for box, nodes in zip(job.ends, ends, strict=True):
        if not nodes:
            raise ValueError(f"no track reaches the pad at {box.x0:.2f}, {box.y0:.2f} mm")
    tree, left = list(ends[0]), list(range(1, len(ends)))
    middles = [((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for box in job.ends]
    gap = {i: _gap(middles[0], middles[i]) for i in left}
    while left or len(job.ends) == 1:
        if left:
            nearest = min(left, key=gap.__getitem__)
            left.remove(nearest)
            goals = ends[nearest]
        else:
            goals = []
        rows, columns = [n[1] for n in goals] or [0], [n[2] for n in goals] or [0]
        box = np.array([min(rows), min(columns), max(rows), max(columns)], np.int64)
        wish = Wish(key(tree), key(goals), box, job.net, sharing)
        found = _search(grid.track, grid.via, grid.tracks, grid.vias, grid.past, wish)
        if found[0] < 0:
            raise ValueError(f"net {job.net}: no path to {goals[:1]}")
        plane = height * width
        path = [(int(n // plane), int(n % plane // width), int(n % width)) for n in found]
        job.path.append(path)
        tree += path + goals
        if not goals:
            break
        for i in left:
            gap[i] = min(gap[i], _gap(middles[nearest], middles[i]))


def _gap(a: tuple[float, float], c: tuple[float, float]) -> float:
    return abs(a[0] - c[0]) + abs(a[1] - c[1])


def _meets(grid: Grid, job: Job) -> bool:
    """Whether a job, taken out of the grid, shares a node with another; marks what it shares."""
    shared = False
    for path in job.path:
        for (layer, y, x), last in zip(path, [None, *path], strict=False):
            turned = last is not None and last[0] != layer
            if grid.tracks[layer, y, x] or (turned and grid.vias[y, x]):
                grid.past[layer, y, x] += 0.4
                shared = True
    return shared


def route(grid: Grid, jobs: list[Job], say=print) -> None:
    """Route all jobs until none meets another.

    Raises
    ------
    ValueError
        A job has no path, or jobs still meet after the last turn.
    """
    again = jobs
    for turn in range(TURNS):
        sharing = min(0.5 * 1.3**turn, 1000.0)
        for job in again:
            for path in job.path:
                grid.stamp(path, -1)
            job.path = []
            _one(grid, job, sharing)
            for path in job.path:
                grid.stamp(path, 1)
        again = []
        for job in jobs:
            for path in job.path:
                grid.stamp(path, -1)
            if _meets(grid, job):
                again.append(job)
            for path in job.path:
                grid.stamp(path, 1)
        say(f"turn {turn}: {len(again)} of {len(jobs)} meet")
        if not again:
            return
    raise ValueError(f"{len(again)} connections still meet")


def segments(paths: list[list[tuple[int, int, int]]]) -> tuple[list, list]:
    """Straight tracks (layer, from, to) and vias of the paths of one net, in mm.

    A track ends where another path begins or ends.
    """
    tracks: list = []
    vias: list = []
    joints = {end for path in paths for end in (path[0], path[-1])}
    for path in paths:
        start = 0
        for i in range(1, len(path)):
            last = i == len(path) - 1
            if path[i][0] != path[i - 1][0]:
                vias.append(_mm(path[i]))
                start = i
            elif (
                last
                or path[i] in joints
                or _step(path[i - 1], path[i]) != _step(path[i], path[i + 1])
            ):
                tracks.append((path[i][0], _mm(path[start]), _mm(path[i])))
                start = i
    return tracks, vias


def _step(a: tuple[int, int, int], c: tuple[int, int, int]) -> tuple[int, int, int]:
    return c[0] - a[0], c[1] - a[1], c[2] - a[2]


def _mm(node: tuple[int, int, int]) -> tuple[float, float]:
    return Grid.place(node[1:])
