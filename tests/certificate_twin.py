"""A second reader of certificates, written from docs/reference/certificate.md in plain Python: is this statement consistent?

Figures are recomputed by enumeration or in closed form where the mechanism is simple. For the others the twin is told the
certificate as it was made: as long as nothing that enters the guarantee has changed, its figures must be the same.
"""

import csv
import hashlib
import io
import json
import math
import re
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product

GRID = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
PACKAGES = {"python", "privurn", "numpy", "numba", "scipy", "duckdb", "pyarrow", "opendp"}
LOSSES = {"l1", "l2", "l2-squared", "hellinger", "hellinger-squared", "w1"}
NOISE_STEPS = {"discrete-laplace": 1, "laplace": 1024, "discrete-gaussian": 1}
ENTRIES = {"schema", "created", "mechanism", "domain", "columns", "neighbouring", "privacy_unit", "n", "records", "target"}
ENTRIES |= {"achieved", "rho", "profile", "assumptions", "randomness", "private", "software", "output", "ledger", "synthetic"}
ENTRIES |= {"sha256"}


class Untrue(Exception):
    """The statement does not hold."""


def must(holds):
    if not holds:
        raise Untrue


def number(value):
    must(type(value) in (int, float) and math.isfinite(value))
    return value


def whole(value, least=0, most=2**53):
    must(type(value) is int and least <= value <= most)
    return value


def real(value):
    must(type(value) is float and math.isfinite(value))
    return value


def text(value):
    must(type(value) is str)
    return value


def rational(value):
    must(re.fullmatch(r"-?\d{1,400}(/\d{1,400})?", text(value)) and not value.endswith("/0"))
    exact = Fraction(value)
    must(str(exact) == value)
    return exact


def keys(value, *names, optional=()):
    must(type(value) is dict and set(names) <= value.keys() <= {*names, *optional})
    return value


def listed(value):
    must(type(value) is list)
    return value


def is_hash(value):
    must(re.fullmatch(r"[0-9a-f]{64}", text(value)))
    return value


def canonical(data):
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sealed(certificate):
    body = {key: value for key, value in certificate.items() if key != "sha256"}
    return {**body, "sha256": hashlib.sha256(canonical(body)).hexdigest()}


# --- domains


def decimal(value):
    must(re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", text(value)) and value != "-0")
    return Fraction(Decimal(value))


class Column:
    """Cells of one column, as (kind, value) in order."""

    def __init__(self, stated):
        must(type(stated) is dict)
        kind = stated.get("kind")
        own = {"grid": ("low", "high", "step"), "bins": ("edges",), "categories": ("values",)}
        must(type(kind) is str and kind in own)
        keys(stated, "kind", "outside", "nulls", *own[kind], optional=("within",) if kind == "bins" else ())
        self.spread = "within" in stated
        must(stated.get("within", "uniform") == "uniform")
        must(stated["outside"] in ("clamp", "other", "null") and stated["nulls"] in ("cell", "error"))
        self.kind, self.stated = kind, stated
        if kind == "grid":
            low, high, step = (decimal(stated[each]) for each in ("low", "high", "step"))
            must(step > 0 and high > low and (high - low) % step == 0 and (high - low) / step < 10**6)
            self.values = [float(low + i * step) for i in range(int((high - low) / step) + 1)]
        elif kind == "bins":
            self.edges = [decimal(each) for each in listed(stated["edges"])]
            must(len(self.edges) > 1 and all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False)))
            self.values = [float((a + b) / 2) for a, b in zip(self.edges, self.edges[1:], strict=False)]
        else:
            must(all(type(each) in (str, int, float, bool) for each in listed(stated["values"])) and stated["values"])
            self.values = [str(each).lower() if type(each) is bool else str(each) for each in stated["values"]]
            must(len(set(self.values)) == len(self.values) and stated["outside"] != "clamp")
            must(not (stated["outside"] == "other" and "other" in self.values))
        self.other = stated["outside"] == "other"
        self.null = stated["nulls"] == "cell" or stated["outside"] == "null"
        self.size = len(self.values) + self.other + self.null

    def cell(self, field):
        """The cell of a CSV field (None: missing), or Untrue."""
        if field is None:
            must(self.null)
            return self.size - 1
        if self.kind == "categories":
            if field == "other" and self.other:
                return len(self.values)
            names = [*self.values, *map(str, self.stated["values"])]
            must(field in names)
            return names.index(field) % len(self.values)
        try:
            value = float(field)
        except ValueError:
            raise Untrue from None
        if math.isnan(value):
            must(self.other)
            return len(self.values)
        if self.spread:
            must(self.edges[0] <= value <= self.edges[-1])
            return next(i for i in reversed(range(len(self.values))) if value >= self.edges[i])
        must(value in self.values)
        return self.values.index(value)


def unused(name, taken):
    while name in taken:
        name += "_"
    return name


# --- guarantees


def compositions(total, parts):
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def enumerated(n, cells, records, law):
    """delta(epsilon): the largest over all pairs of neighbours of all outputs, added one by one."""
    must(cells * n * records <= 200)
    outputs = list(compositions(records, cells))
    laws = {x: [law(x, s) for s in outputs] for x in compositions(n, cells)}

    def moved(x, i, j):
        return tuple(c - (k == i) + (k == j) for k, c in enumerate(x))

    pairs = {(x, moved(x, i, j)) for x in laws for i, j in product(range(cells), repeat=2) if i != j and x[i] > 0}
    return lambda e: max(sum(max(0.0, p - math.exp(e) * q) for p, q in zip(laws[x], laws[y], strict=True)) for x, y in pairs)


def ways(s):
    return math.factorial(sum(s)) // math.prod(math.factorial(c) for c in s)


def urn_law(alpha):
    def law(x, s):
        rising = math.prod((alpha + c + i for c, k in zip(x, s, strict=True) for i in range(k)), start=Fraction(1))
        total = math.prod((alpha * len(x) + sum(x) + i for i in range(sum(s))), start=Fraction(1))
        return float(ways(s) * rising / total)

    return law


def smoothed_law(weight):
    def law(x, s):
        shares = [(1 - weight) * Fraction(c, sum(x)) + weight / len(x) for c in x]
        return float(ways(s) * math.prod((p**k for p, k in zip(shares, s, strict=True)), start=Fraction(1)))

    return law


def of_losses(law):
    """delta(epsilon) of a list of (loss, probability)."""
    return lambda e: sum(p * max(0.0, -math.expm1(e - loss)) for loss, p in law)


def geometric(scale, steps):
    r = math.exp(-1.0 / scale)
    reach = range(-int(60 * scale) - 5, int(60 * scale) + steps + 5)
    return of_losses([((abs(k - steps) - abs(k)) / scale, (1 - r) / (1 + r) * r ** abs(k)) for k in reach])


def bounded_range(top):
    return lambda e: (math.exp(top / 2) - math.exp(e / 2)) ** 2 / math.expm1(top) if e < top else 0.0


def pure(top):
    return lambda e: (math.exp(top) - math.exp(e)) / (1 + math.exp(top)) if e < top else 0.0


def two_counts(scale):
    r = math.exp(-1.0 / scale)
    return of_losses([((a + b) / scale, r ** (2 - (a > 0) - (b > 0)) / (1 + r) ** 2) for a, b in product((1, -1), repeat=2)])


# --- mechanisms: checked parameters, what enters the guarantee, delta(epsilon) or None, cells, rows, columns beside


def mechanism(name, p, domain):
    shape = {"cells": None, "rows": None, "beside": (), "f": None, "neighbouring": None, "noise": False}
    if name in ("dirichlet-multinomial", "posterior-sample"):
        keys(p, "n", "cells", "alpha", "records", *(["draws"] if name == "posterior-sample" else []))
        n, cells, alpha = whole(p["n"], 1), whole(p["cells"], 1), rational(p["alpha"])
        must(alpha > 0)
        draws = whole(p.get("draws", 1), 1, 10_000)
        records = whole(p["records"], 1, 10**9)
        shape |= {"cells": cells, "rows": records, "enters": (n, cells, alpha, records, draws)}
        if draws == 1:
            shape["f"] = lambda: enumerated(n, cells, records, urn_law(alpha))
        if name == "posterior-sample":
            shape |= {"rows": cells * draws, "beside": ("draw", "probability") if draws > 1 else ("probability",)}
    elif name == "perturbed-histogram":
        keys(p, "n", "cells", "records", "noise", "scale", "steps", "publish", "smoothing")
        must(type(p["noise"]) is str and p["noise"] in NOISE_STEPS and p["publish"] in ("records", "counts"))
        must(whole(p["steps"]) == NOISE_STEPS[p["noise"]] and real(p["scale"]) > 0)
        n, cells, records, smoothing = whole(p["n"], 1), whole(p["cells"], 1), whole(p["records"], 1), rational(p["smoothing"])
        must(0 <= smoothing <= 1 and (p["publish"] == "records" or (records == cells and smoothing == 0)))
        shape |= {"cells": cells, "rows": records, "noise": True, "enters": (p["noise"], p["scale"], cells)}
        shape["beside"] = ("count",) if p["publish"] == "counts" else ()
        if p["noise"] == "discrete-laplace" and cells > 2:
            shape["f"] = lambda: two_counts(p["scale"])
    elif name == "smoothed-histogram":
        keys(p, "n", "cells", "records", "weight")
        n, cells, records, weight = whole(p["n"], 1), whole(p["cells"], 1), whole(p["records"], 1), rational(p["weight"])
        must(0 < weight <= 1)
        shape |= {"cells": cells, "rows": records, "enters": (n, cells, records, weight)}
        shape["f"] = lambda: enumerated(n, cells, records, smoothed_law(weight))
    elif name == "exponential":
        keys(p, "n", "cells", "records", "epsilon", "loss", "gaps", "base")
        n, cells, records = whole(p["n"], 1), whole(p["cells"], 2), whole(p["records"], 1)
        must(p["base"] == "uniform over histograms" and type(p["loss"]) is str and p["loss"] in LOSSES)
        if p["gaps"] is not None:
            must(p["loss"] == "w1" and len(listed(p["gaps"])) == cells - 1 and all(rational(each) > 0 for each in p["gaps"]))
        top = real(p["epsilon"])
        must(1e-9 <= top <= 600)
        shape |= {"cells": cells, "rows": records, "enters": (top,), "f": lambda: bounded_range(top)}
    elif name == "pseudo-posterior":
        keys(p, "n", "cells", "domain", "model", "threshold", "steps", "records", "draws", "reference", "downscale")
        n, records, draws = whole(p["n"], 1), whole(p["records"], 1), whole(p["draws"], 1)
        must(whole(p["cells"]) == Column(p["domain"]).size and p["steps"] == 2**20 and type(p["steps"]) is int)
        must(draws <= records and real(p["threshold"]) > 0 and 0 < real(p["downscale"]) <= 1)
        must(canonical(domain.get("columns")) == canonical({next(iter(domain["columns"])): p["domain"]}))
        for each in (p["model"], *([] if p["reference"] is None else [p["reference"]])):
            keys(each, "kind", "probability", "points")
            must(each["kind"] == "bernoulli" and len(listed(each["probability"])) == 2)
            must(0 <= number(each["probability"][0]) < number(each["probability"][1]) <= 1 and whole(each["points"], 1, 2**21))
        shape |= {"cells": p["cells"], "rows": records, "enters": (p["threshold"], draws)}
        if draws == 1:
            shape["f"] = lambda: bounded_range(4 * p["threshold"])
    elif name == "dirichlet-process":
        keys(p, "n", "records", "strength", "discount", "base", "old_values_only")
        n, records = whole(p["n"], 1), whole(p["records"], 1)
        must(rational(p["strength"]) > 0 and p["discount"] == "0" and type(p["old_values_only"]) is bool)
        must(p["base"] == {"kind": "fresh-labels", "prefix": "new_"})
        shape |= {"rows": None if p["old_values_only"] else records, "enters": (n, records, p["strength"])}
    elif name == "label-discovery":
        keys(p, "n", "records", "discovery", "urn", "urn_guarantee")
        keys(p["discovery"], "scale", "threshold", "distances")
        keys(p["urn"], "n", "cells", "alpha", "records")
        keys(p["urn_guarantee"], "epsilon", "delta")
        must(p["discovery"]["distances"] == [2, 2, 1] and all(type(each) is int for each in p["discovery"]["distances"]))
        must(real(p["discovery"]["scale"]) > 0 and whole(p["discovery"]["threshold"]))
        n, records = whole(p["n"], 1), whole(p["records"], 1)
        must((whole(p["urn"]["n"]), whole(p["urn"]["records"])) == (n, records) and rational(p["urn"]["alpha"]) > 0)
        shape |= {"cells": whole(p["urn"]["cells"], 1), "rows": records, "noise": True}
        shares = real(p["urn_guarantee"]["epsilon"]), real(p["urn_guarantee"]["delta"])
        shape["enters"] = (p["discovery"]["scale"], p["discovery"]["threshold"], *shares)
        shape["at_least"] = rational(p["urn"]["alpha"])
    elif name.startswith("local-"):
        keys(p, "n", "order", "channel")
        n, c = whole(p["n"], 1), p["channel"]
        must(p["order"] in ("shuffled", "kept"))
        shape |= {"rows": n}
        p = {**p, "records": n}
        if name == "local-randomised-response":
            keys(c, "categories", "odds")
            k, odds = whole(c["categories"], 2), rational(c["odds"])
            must(odds > 1)
            shape |= {"cells": k, "enters": (k, odds)}
            shape["f"] = lambda: lambda e: max(0.0, float((odds - Fraction(math.exp(e))) / (odds + k - 1)))
        else:
            must(name in ("local-laplace", "local-discrete-laplace"))
            keys(c, "lower", "upper", "scale", "steps", "step")
            low, high, scale = (real(c[each]) for each in ("lower", "upper", "scale"))
            must(low < high and scale > 0 and real(c["step"]) == (high - low) / whole(c["steps"], 1))
            shape |= {"noise": True, "enters": (scale / c["step"], c["steps"])}
            if name == "local-discrete-laplace":
                must(low == int(low) and high == int(high) and c["steps"] == high - low)
                shape["f"] = lambda: geometric(scale, c["steps"])
    else:
        must(name == "noisy-bernoulli-statistics")
        own = ("column", "upper", "missing")
        keys(p, "neighbouring", "noise", "size_noise", "contributions", *own)
        must(p["neighbouring"] in ("replace-one", "add-remove"))
        for each in (p["noise"], *([] if p["size_noise"] is None else [p["size_noise"]])):
            keys(each, "kind", "scale", "step")
            must(each["kind"] in ("laplace", "gaussian") and real(each["scale"]) > 0 and real(each["step"]) in (1.0, 2.0**-10))
            must(each["kind"] == p["noise"]["kind"])
        must(p["neighbouring"] == "add-remove" or p["size_noise"] is None)
        k = whole(p["contributions"], 1)
        shape |= {"noise": True, "neighbouring": p["neighbouring"], "contributions": k}
        shape["enters"] = (canonical(p["noise"]), canonical(p["size_noise"]), k)
        must(whole(p["upper"]) == 1 and text(p["column"]) is not None and p["missing"] in ("error", "unreadable"))
        names = [p["column"]]
        if p["noise"]["kind"] == "laplace":
            size = 0.0 if p["size_noise"] is None else 1.0 / p["size_noise"]["scale"]
            shape["f"] = lambda: pure(k * (1.0 / p["noise"]["scale"] + size))
        names += [] if p["size_noise"] is None else [unused("n", names)]
        shape |= {"names": names, "own": {each: p[each] for each in own}, "rows": len(names)}
    if shape["neighbouring"] is None:
        shape |= {"neighbouring": "replace-one", "n": n, "records": p["records"]}
    return shape


# --- the whole


def check(certificate, published, original):
    """Untrue unless the certificate, and the CSV text published with it, are one consistent statement."""
    keys(certificate, *ENTRIES)
    must(certificate["schema"] == "privurn-certificate/2" and certificate == sealed(certificate))
    try:
        created = datetime.strptime(text(certificate["created"]), "%Y-%m-%dT%H:%M:%S+00:00")
    except ValueError:
        raise Untrue from None
    must(created.strftime("%Y-%m-%dT%H:%M:%S+00:00") == certificate["created"])
    must(all(re.fullmatch(r"[0-9][\w.+!-]{0,63}", text(each)) for each in keys(certificate["software"], *PACKAGES).values()))
    paid = certificate["ledger"]
    must(type(paid) is dict and type(paid.get("used")) is bool)
    if paid["used"]:
        keys(paid, "used", "ledger", "entry", "hash")
        must(re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", text(paid["ledger"])) and whole(paid["entry"], 1))
        must(is_hash(paid["hash"]))
    else:
        keys(paid, "used")
    stated, domain = keys(certificate["mechanism"], "name", "parameters"), certificate["domain"]
    must(type(stated["parameters"]) is dict and type(domain) is dict)
    made = mechanism(text(stated["name"]), stated["parameters"], domain)
    unit = keys(certificate["privacy_unit"], "unit", "contributions")
    k = whole(unit["contributions"], 1, 10**6)
    must(unit["unit"] == ("one record" if k == 1 else f"up to {k} records of one person"))
    must(k == made.get("contributions", k) and certificate["neighbouring"] == made["neighbouring"])
    for field in ("assumptions", "randomness", "private"):  # words that follow from what the tests leave as it was made
        must(canonical(certificate[field]) == canonical(original[field]))
    must((k, made["neighbouring"]) == (original["privacy_unit"]["contributions"], original["neighbouring"]))
    statistics = "names" in made
    must(certificate["synthetic"] is None)  # of none of the twin's mechanisms records are made
    output = keys(certificate["output"], "file", "rows", "sha256")
    must(output["file"] == ("measurements.csv" if statistics else "data.csv"))
    must(is_hash(output["sha256"]) == hashlib.sha256(published).hexdigest())
    if statistics:
        secret = made["neighbouring"] == "add-remove"
        must(certificate["n"] is None if secret else whole(certificate["n"], 1) is not None)
        must(type(certificate["records"]) is int and certificate["records"] == 0)
        must(canonical(domain) == canonical({"kind": "statistics", **made["own"]}))
        check_numbers(published, certificate, made, stated["parameters"])
    else:
        must((whole(certificate["n"], 1), whole(certificate["records"])) == (made["n"], made["records"]))
        check_rows(published, certificate, made, stated)
    must(whole(output["rows"]) == made["rows"] if made["rows"] is not None else output["rows"] <= made["records"])
    check_figures(certificate, made, original)


def check_figures(certificate, made, original):
    target, achieved = keys(certificate["target"], "epsilon", "delta"), keys(certificate["achieved"], "epsilon", "delta")
    must(0 < number(target["epsilon"]) <= 600 and 0 <= number(target["delta"]) < 1)
    points = [keys(each, "epsilon", "delta") for each in listed(certificate["profile"])]
    must([number(each["epsilon"]) for each in points] == sorted({*GRID, target["epsilon"]}))
    figures = [*(number(each["delta"]) for each in points), number(achieved["delta"])]
    must(all(0 <= each <= 1 for each in figures))
    for each in (achieved["epsilon"], certificate["rho"]):
        must(each is None or number(each) >= 0)
    before = mechanism(original["mechanism"]["name"], original["mechanism"]["parameters"], original["domain"])
    must(made.get("at_least", 0) >= before.get("at_least", 0))
    if (certificate["mechanism"]["name"], made["enters"]) == (original["mechanism"]["name"], before["enters"]):
        before = {each["epsilon"]: each["delta"] for each in original["profile"]}
        must(same(target["delta"], original["target"]["delta"]) and target["epsilon"] in before)
        must(same(achieved["epsilon"], original["achieved"]["epsilon"]) and same(certificate["rho"], original["rho"]))
        must(same(achieved["delta"], before[target["epsilon"]]) and before[target["epsilon"]] <= target["delta"])
        must(all(same(each["delta"], before.get(each["epsilon"])) for each in points))
        return
    must(made["f"] is not None)
    f = made["f"]()
    must(all(math.isclose(each["delta"], f(each["epsilon"]), rel_tol=1e-7, abs_tol=1e-12) for each in points))


def same(one, other):
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-290)


def check_numbers(raw, certificate, made, parameters):
    header, rows = rows_of(raw)
    must(certificate["columns"] == header == ["sum_of", "value"])
    must([name for name, _ in rows] == made["names"])
    noises = [parameters["noise"]] * len(rows)
    if parameters["size_noise"] is not None:
        noises[-1] = parameters["size_noise"]
    for (_, field), noise in zip(rows, noises, strict=True):
        must(field is not None and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", field))
        must(Fraction(field) / Fraction(noise["step"]) % 1 == 0)
        must(abs(Fraction(field)) <= 2**63 * (1 + Fraction(noise["step"])))  # records, and steps of noise


def rows_of(raw):
    """Header and rows of a CSV file; a field that is empty and not quoted is missing."""
    try:
        content = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Untrue from None
    marked = re.sub(r'(?m)(^|,)""(?=,|$)', r'\1"\\empty"', content)
    try:
        table = [row or [""] for row in csv.reader(io.StringIO(marked))]
    except csv.Error:  # half of a line break
        raise Untrue from None
    must(table)
    fields = [[None if each == "" else "" if each == "\\empty" else each for each in row] for row in table[1:]]
    must(all(len(row) == len(table[0]) for row in fields))
    return table[0], fields


def check_rows(raw, certificate, made, stated):
    domain, (header, rows) = certificate["domain"], rows_of(raw)
    must(len(rows) == certificate["output"]["rows"] and type(certificate["columns"]) is list)
    must(header == certificate["columns"])
    if domain.get("kind") == "bounds":
        keys(domain, "kind", "column", "lower", "upper", "nulls")
        channel = stated["parameters"]["channel"]
        must(made["cells"] is None and header == [text(domain["column"])] and domain["nulls"] in ("error", "lower"))
        must((real(domain["lower"]), real(domain["upper"])) == (channel["lower"], channel["upper"]))
        for [field] in rows:
            must(field is not None and re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", field))
            steps = (Fraction(float(field)) - Fraction(channel["lower"])) / Fraction(channel["step"])
            must(abs(steps - round(steps)) < Fraction(1, 1000))
        return
    if domain.get("kind") == "open-labels":
        found = {field for [field] in rows}
        must(header == [text(domain.get("column"))])
        if stated["name"] == "label-discovery":
            keys(domain, "kind", "column", "labels", "other")
            labels = listed(domain["labels"])
            must(all(each is None or type(each) is str for each in labels) and len(set(labels)) == len(labels))
            must(domain["other"] == unused("other", labels) and made["cells"] == len(labels) + 1)
            must(found <= {*labels, domain["other"]})
        else:
            keys(domain, "kind", "column")
            must(stated["name"] == "dirichlet-process")
            fresh = {each for each in found if each and re.fullmatch(r"new_\d+", each)}
            k = 0 if stated["parameters"]["old_values_only"] else len(fresh)
            must(fresh == {f"new_{i + 1}" for i in range(k)})
        return
    keys(domain, "kind", "columns")
    must(domain["kind"] == "joint" and type(domain["columns"]) is dict and domain["columns"])
    parts = {name: Column(each) for name, each in domain["columns"].items()}
    local = stated["name"].startswith("local-")
    must(not any(each.spread for each in parts.values()) or not (made["beside"] or local))
    names = list(parts)
    for each in made["beside"]:
        names.append(unused(each, names))
    must(header == names and math.prod(each.size for each in parts.values()) == made["cells"])
    sums = {}
    for i, row in enumerate(rows):
        place = i % made["cells"]
        for field, each in zip(row, parts.values(), strict=False):
            cell = each.cell(field)
            place, expected = divmod(place, each.size)
            must(not made["beside"] or cell == expected)
        if made["beside"]:
            try:
                value = float(row[-1])
            except (TypeError, ValueError):
                raise Untrue from None
            must(math.isfinite(value))
            if made["beside"] == ("count",):
                must((value * NOISE_STEPS[stated["parameters"]["noise"]]).is_integer())
            else:
                draw = i // made["cells"]
                must(len(made["beside"]) == 1 or float(row[-2]) == draw + 1)
                count = round(value * made["records"])
                must(count >= 0 and count / made["records"] == value)
                sums[draw] = sums.get(draw, 0) + count
    must(all(total == made["records"] for total in sums.values()))


def holds(certificate, published, original):
    """Whether the statement is consistent."""
    try:
        check(certificate, published, original)
    except Untrue:
        return False
    return True
